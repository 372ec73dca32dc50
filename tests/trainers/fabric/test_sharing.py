"""Data that cannot be shared evenly: nobody waits for ever, and what is to be the same is the same."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from share_epochs import CASES

from forgefield.models.potential import save_potential

PROGRAM = Path(__file__).parent / "share_epochs.py"
# of two epochs of 11, 2 or 8 structures in batches of 6, whatever the number of processes
STEPS = {"odd": 4, "few": 2, "giant": 4}


@pytest.fixture(scope="module")
def trained(small_potential, tmp_path_factory):
    """By number of processes: what each of them has found."""
    directory = tmp_path_factory.mktemp("sharing")
    save_potential(small_potential, directory / "model")
    found = {}
    for devices in (1, 2, 3):
        output = directory / str(devices)
        output.mkdir()
        words = [sys.executable, PROGRAM, directory / "model", output, devices]
        subprocess.run([str(word) for word in words], check=True, timeout=900)
        found[devices] = [dict(np.load(output / f"rank_{i}.npz")) for i in range(devices)]
    return found


def of(case, arrays):
    return {name: value for name, value in arrays.items() if name.startswith(f"{case}/")}


@pytest.mark.parametrize("case", CASES)
def test_all_processes_have_the_same_bits(trained, case):
    for ranks in trained.values():
        first, *others = (of(case, rank) for rank in ranks)
        assert len(first) > 10
        assert np.isfinite(first[f"{case}/valid_loss"]).all()
        for other in others:
            assert all(np.array_equal(other[name], value) for name, value in first.items())


@pytest.mark.parametrize("case", [case for case in CASES if "exact" in case])
def test_exact_is_what_one_process_does(trained, case):
    (alone,), *shared = (trained[devices] for devices in (1, 2, 3))
    for ranks in shared:
        for name, value in of(case, alone).items():
            np.testing.assert_allclose(ranks[0][name], value, rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("case", [case for case in CASES if "kept" in case or "fixed" in case])
def test_steps(trained, case):
    name, _, _, drop_last = CASES[case]
    for devices, ranks in trained.items():
        expected = 2 if drop_last else STEPS[name]
        assert int(ranks[0][f"{case}/step"]) == expected, devices
