"""The command line in an empty directory, and a few frames of water for it."""

import sys

import numpy as np
import pytest

from forgefield.cli import main


@pytest.fixture
def forgefield(monkeypatch, capsys, tmp_path):
    """Runs `forgefield ARGUMENTS` in an empty directory; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["forgefield", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture
def water(tmp_path):
    """Eight frames of water in the sGDML layout."""
    random = np.random.default_rng(0)
    positions = np.array([[0.0, 0.0, 0.0], [0.96, 0.0, 0.0], [-0.24, 0.93, 0.0]]) + 0.02 * random.normal(size=(8, 3, 3))
    np.savez(tmp_path / "water.npz", R=positions, z=[8, 1, 1], E=random.normal(size=8), F=random.normal(size=(8, 3, 3)))
