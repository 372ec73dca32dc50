"""One process fails, and all of them end."""

import subprocess
import time
from pathlib import Path

import pytest
from launching import start

PROGRAM = Path(__file__).parent.parent / "fail_on_one.py"
LIMIT = 10.0


def ended(words, **together):
    """What the processes wrote, once all have failed, and the seconds between the first end and the last."""
    started = start([PROGRAM, *words], **together, stderr=subprocess.PIPE, text=True)
    while all(process.poll() is None for process in started):
        time.sleep(0.05)
    first = time.monotonic()
    written = "".join(process.communicate(timeout=2 * LIMIT)[1] for process in started)
    assert all(process.returncode for process in started)
    return written, time.monotonic() - first


@pytest.mark.parametrize("together", [{"ranks": 2}, {"processes": 2}], ids=["ranks", "JAX processes"])
def test_all_end_when_one_cannot_read(together):
    written, seconds = ended(["read"], **together)
    assert "OSError: the disk is gone" in written
    assert seconds < LIMIT


@pytest.mark.parametrize(
    ("together", "name"), [({"ranks": 2}, "rank 1"), ({"processes": 2}, "device 1")], ids=["ranks", "JAX processes"]
)
def test_a_replica_that_differs_is_named(together, name):
    written, _ = ended(["replica"], **together)
    assert f"{name} holds another .params['width'] than" in written


def test_mpi_and_jax_distributed_are_not_used_together():
    written, _ = ended(["active"], ranks=2)
    assert "MPI with 2 ranks and jax.distributed are both active" in written
