"""A real Slurm with two nodes, and clones of the repository, at whose root ``snakemake --profile slurm`` is started."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CLONED = ("Snakefile", "config", "envs", "profiles", "resources", "scripts", "slurm", "src", "workflow")
# how long jobs take here is seconds, and their nodes are small
SLURM = {"cpus_per_device": 1, "mem_mb": 3000, "hours": 0.25}
LIMIT = 30.0


@pytest.fixture(scope="session", autouse=True)
def two_nodes() -> None:
    """Tests here need a Slurm whose nodes n1 and n2 are up."""
    if shutil.which("sinfo") is None:
        pytest.skip("no Slurm here; as root on Debian, ../shared/tools/start_slurm.sh start starts one")
    found = subprocess.run(["sinfo", "-h", "-N", "-p", "debug", "-o", "%T"], capture_output=True, text=True, timeout=60)
    if found.stdout.split().count("idle") < 2:
        pytest.skip(f"Slurm has no two idle nodes in a partition debug: {found.stdout or found.stderr}")


class Clone:
    """What a user has after `git clone`, with a configuration.

    Attributes:
        path: its root.
        results: what the workflow makes.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.results = path, path / "results"

    def configure(self, **content: object) -> None:
        path = self.path / "config" / "config.yaml"
        path.write_text(json.dumps(json.loads(path.read_text()) | content))

    def command(self, *arguments: str) -> list[str]:
        quick = ["--slurm-init-seconds-before-status-checks", "3", "--latency-wait", "10"]
        return [sys.executable, "-m", "snakemake", "--profile", "slurm", *quick, *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start snakemake, which writes into ``snakemake.log``."""
        with open(self.path / "snakemake.log", "w") as log:
            return subprocess.Popen(
                self.command(*arguments), cwd=self.path, env=self.environment, stdout=log, stderr=log, text=True
            )

    def run(self, *arguments: str) -> str:
        """Run snakemake to its end, which must be a good one; what it wrote."""
        process = self.start(*arguments)
        code = process.wait(timeout=900)
        assert code == 0, self.written()
        return self.written()

    def written(self) -> str:
        return (self.path / "snakemake.log").read_text()

    def submitted(self) -> list[str]:
        """The numbers of the jobs of the last run of snakemake."""
        return re.findall(r"SLURM jobid (\d+)", self.written())

    @property
    def training(self) -> dict[str, object]:
        return json.loads((self.path / "config" / "config.yaml").read_text())["training"]

    @property
    def environment(self) -> dict[str, str]:
        without = {key: value for key, value in os.environ.items() if key != "SNAKEMAKE_PROFILE"}
        return without | {"PYTHONPATH": str(self.path / "src")}

    def history(self, run: str) -> list[str]:
        path = self.results / "runs" / run / "history.csv"
        return path.read_text().splitlines() if path.exists() else []

    def wait_for(self, condition: Callable[[], object], process: subprocess.Popen[str], seconds: float = 600) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert process.poll() is None, self.written()
            assert time.monotonic() < deadline, self.written()
            time.sleep(0.1)

    def processes(self) -> dict[int, str]:
        """Everything that works on the clone, but for its snakemake: command lines by process ID."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace").replace("\0", " ")
                where = os.readlink(path.parent / "cwd")
            except OSError:
                continue
            if where == str(self.path) and words and "--profile slurm" not in words:
                found[int(path.parent.name)] = words
        return found

    def process_of_rank(self, rank: int) -> int:
        """The ID of the process that trains as this rank."""
        marks = (f"\0SLURM_PROCID={rank}\0".encode(), b"\0FORGEFIELD_RANK_LOGS=")
        (found,) = [
            pid for pid in self.processes() if all(m in Path(f"/proc/{pid}/environ").read_bytes() for m in marks)
        ]
        return found

    def wait_until_all_ended(self) -> None:
        deadline = time.monotonic() + LIMIT
        while self.processes():
            assert time.monotonic() < deadline, self.processes()
            time.sleep(0.1)


@pytest.fixture(scope="session")
def clone_of(root: Path, new_workspace: Callable, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Clone]:
    """Makes a clone that trains the small model of tests/workflow on water, with the results of another one."""

    def make(other: Clone | None = None, **content: object) -> Clone:
        path = tmp_path_factory.mktemp("clone")
        for name in CLONED:
            if (root / name).is_symlink():
                (path / name).symlink_to(os.readlink(root / name))
            elif (root / name).is_dir():
                shutil.copytree(root / name, path / name, ignore=shutil.ignore_patterns("__pycache__", "datasets"))
            else:
                shutil.copy(root / name, path / name)
        water = new_workspace().path
        for file in ("water.npz", "hot-water.npz", "config/config.yaml"):
            shutil.copy2((other.path if other else water) / file, path / file)
        clone = Clone(path.resolve())
        clone.configure(**({"slurm": SLURM} | content))
        if other:
            for name in ("results", ".snakemake/metadata"):
                shutil.copytree(other.path / name, path / name)
        return clone

    return make


@pytest.fixture(scope="session")
def prepared(clone_of: Callable[..., Clone]) -> Clone:
    """A clone in which all stages before training are done, on this machine."""
    clone = clone_of()
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "results/statistics/water-tiny.json"]
    done = subprocess.run(command, cwd=clone.path, env=clone.environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return clone
