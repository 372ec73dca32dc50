"""A full disk and a read-only one end a training in one line, and its last checkpoint is continued from."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("method", ["single", "2 JAX processes"])
def test_a_full_and_a_read_only_disk(folder, method):
    namespace = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*namespace, "mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("no mount namespaces for this user here, in which a disk can be small or read-only")
    program = Path(__file__).with_name("mounted.py")
    done = subprocess.run([*namespace, sys.executable, program, folder, method], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
