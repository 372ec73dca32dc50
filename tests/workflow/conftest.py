"""Real runs of snakemake, each in a directory of its own, on water molecules and a model of a few dozen parameters."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

CONFIG = {
    "dataset": "water",
    "model": "tiny",
    "datasets": {
        name: {
            "source": f"{name}.npz",
            "units": {"energy": "kcal/mol", "length": "angstrom"},
            "split": {"train": 16, "valid": 4, "test": 4},
        }
        for name in ("water", "hot-water")
    },
    "models": {
        "tiny": {
            "elements": ["H", "O"],
            "r_max": 2.0,
            "hidden_channels": 2,
            "l_max": 1,
            "correlation": 1,
            "n_interactions": 1,
            "radial_mlp": [4],
            "mlp_channels": 2,
        }
    },
    "training": {"batch": 8, "epochs": 2, "lr": 0.01, "precision": "float64", "checkpoint_every": 1},
    "plots": {"dpi": 50},
}


class Workspace:
    """A directory with a configuration and two datasets, in which snakemake runs.

    Attributes:
        path: the directory; ``results`` in it is what the workflow makes.
    """

    def __init__(self, path: Path, root: Path):
        self.path, self.results, self._root = path, path / "results", root

    def command(self, *arguments: str) -> list[str]:
        """The command line of a run that uses the repository's Snakefile and default profile."""
        start = [sys.executable, "-m", "snakemake", "--snakefile", str(self._root / "Snakefile"), "--cores", "2"]
        return [*start, "--directory", str(self.path), *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """Without this machine's own profile."""
        return {key: value for key, value in os.environ.items() if key != "SNAKEMAKE_PROFILE"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run snakemake to its end."""
        return subprocess.run(
            self.command(*arguments), env=self.environment, cwd=self.path, capture_output=True, text=True, timeout=600
        )

    def jobs(self, *arguments: str) -> set[str]:
        """The rules that a call with these arguments would run."""
        done = self.run("--dry-run", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        table = re.search(r"^job +count\n[- ]+\n(.*?)^total", done.stdout, flags=re.MULTILINE | re.DOTALL)
        assert table or "Nothing to be done" in done.stdout + done.stderr, done.stdout + done.stderr
        return {line.split()[0] for line in table[1].splitlines()} - {"all"} if table else set()


def write_npz(path: Path, *, spread: float, seed: int) -> None:
    """Twenty-four water molecules with harmonic bonds and angle, in the sGDML layout, kcal/mol and Å."""
    random = np.random.default_rng(seed)
    rest = np.array([[0.0, 0.0, 0.0], [0.96, 0.0, 0.0], [-0.24, 0.93, 0.0]])
    displacements = spread * random.normal(size=(24, 3, 3))
    stiffness = 200.0
    np.savez(
        path,
        R=rest + displacements,
        z=np.array([8, 1, 1]),
        E=-47900.0 + 0.5 * stiffness * (displacements**2).sum((1, 2)),
        F=-stiffness * displacements,
    )


@pytest.fixture(scope="session")
def new_workspace(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Workspace]:
    """Makes a workspace in which nothing has run."""

    def make() -> Workspace:
        path = tmp_path_factory.mktemp("workspace")
        (path / "config").mkdir()
        (path / "config" / "config.yaml").write_text(json.dumps(CONFIG))
        write_npz(path / "water.npz", spread=0.02, seed=0)
        write_npz(path / "hot-water.npz", spread=0.05, seed=1)
        return Workspace(path, root)

    return make


@pytest.fixture
def workspace(new_workspace: Callable[[], Workspace]) -> Workspace:
    """A workspace in which nothing has run."""
    return new_workspace()


@pytest.fixture(scope="session")
def finished(new_workspace: Callable[[], Workspace]) -> Workspace:
    """One complete run, shared by all tests: they only look at it and ask what a further call would run."""
    workspace = new_workspace()
    done = workspace.run()
    (workspace.path / "stdout").write_text(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    return workspace


@pytest.fixture
def finished_copy(finished: Workspace, root: Path, tmp_path: Path) -> Workspace:
    """A complete run with its file times, free to be changed."""
    shutil.copytree(finished.path, tmp_path / "copy")
    return Workspace(tmp_path / "copy", root)
