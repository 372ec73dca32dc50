#!/usr/bin/env bash
# Create the virtual environment, or say in one line what the machine lacks. Usage: create_venv.sh PYTHON VENV
set -euo pipefail
python=$1
venv=$2

fail() {
    echo "error: $1" >&2
    exit 2
}

command -v "$python" >/dev/null || fail "$python is not here; install Python 3.11 or newer, or run: make PYTHON=/path/to/python3"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "$python does not run"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is Python $version, but 3.11 or newer is needed; install one and run: make PYTHON=python3.11"
# Debian and Ubuntu ship Python without what `python -m venv` needs.
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "Python $version cannot make virtual environments yet; run: apt-get install python$version-venv"
# A checkout that was moved, or an interpreter that was upgraded, leaves an environment that no longer works.
if [[ -e $venv ]] && ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
fi
[[ -e $venv ]] || "$python" -m venv "$venv"
