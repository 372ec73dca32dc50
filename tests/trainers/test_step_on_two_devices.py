"""What cuEquivariance needs of the training step, and whether it still does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def report() -> dict:
    script = Path(__file__).with_name("step_on_two_devices.py")
    return json.loads(subprocess.run([sys.executable, script], stdout=subprocess.PIPE, check=True).stdout)


def test_the_step_gives_the_mean_of_the_devices_gradients(report):
    assert 0 < report["difference"] < 1e-12


def test_cuequivariance_does_not_yet_tell_what_varies_over_devices(report):
    """When this fails, ``check_vma=False`` in ``forgefield.trainers.steps`` has lost one of its reasons."""
    assert report["checked"]["reference"] == "accepted"
    assert "Expected cotangent type" in report["checked"]["cuequivariance"]
