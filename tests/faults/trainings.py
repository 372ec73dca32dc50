"""Small trainings by every method: their data and model, how they are started, and what they leave."""

import csv
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from victim import FAULT, FOLDER, OPERATIONS, Fault

from forgefield.data.store import StoreWriter
from forgefield.data.structures import Structure
from forgefield.files import write_json
from forgefield.models.mace.initial import initial_potential
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.potential import save_potential
from forgefield.statistics.summarize import UNITS
from forgefield.trainers.checkpoints import saved_checkpoints
from forgefield.units import Units

VICTIM = Path(__file__).with_name("victim.py")
# keys of a run, and the number of its processes
METHODS: dict[str, tuple[dict[str, Any], int]] = {
    "single": ({}, 1),
    "2 local devices": ({"parallelism": "jax", "devices": 2}, 1),
    "2 MPI ranks": ({"parallelism": "mpi", "devices": 2}, 2),
    "2 JAX processes": ({"parallelism": "jax", "n_nodes": 2}, 2),
    "fabric": ({"backend": "fabric"}, 1),
    "fabric, 2 processes": ({"backend": "fabric", "devices": 2}, 2),
}
# columns of a history that no two trainings share
TIMES = ("seconds", "data_wait_ms_per_step")
SIZES = {"train": 18, "valid": 5}
SHIFTS = {"H": -13.6, "O": -430.0}
TRAINING = {"batch": 4, "epochs": 5, "lr": 0.01, "precision": "float64", "ema": 0.9, "checkpoint_steps": 3}
MODEL = MaceSettings(
    r_max=3.0,
    hidden_channels=2,
    l_max=1,
    correlation=(1,),
    interactions=("RealAgnosticResidualInteractionBlock",),
    n_bessel=4,
    polynomial_cutoff=5,
    radial_mlp=(4,),
    mlp_channels=2,
)


def make_inputs(folder: Path) -> None:
    """Converted data, a model and statistics, as the stages before a training make them."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    (folder / "data").mkdir()
    for part, n in SIZES.items():
        structures = [_structure(rng) for _ in range(n)]
        about = {"split": part, "source": "made up", "source_sha256": "0"}
        with StoreWriter(
            folder / "data" / f"{part}.h5",
            n_structures=n,
            max_atoms=max(map(len, structures)),
            units=Units("eV", "angstrom"),
            dtype="float64",
            has_virial=False,
            attributes=about,
        ) as store:
            store.append(structures)
    save_potential(initial_potential((1, 8), MODEL, seed=0), folder / "model")
    statistics = {"energy_shifts": SHIFTS, "force_rms": 1.0, "neighbors": {"average": 4.0}, "units": UNITS}
    write_json(folder / "statistics.json", statistics)


def _structure(rng: np.random.Generator) -> Structure:
    """Three to eight atoms on a grid, with random labels."""
    size = int(rng.integers(3, 9))
    grid = np.stack(np.meshgrid(*[np.arange(2)] * 3), axis=-1).reshape(-1, 3)
    numbers = rng.choice([1, 8], size)
    return Structure(
        numbers,
        1.4 * grid[:size] + rng.uniform(-0.2, 0.2, (size, 3)),
        energy=float(np.where(numbers == 8, SHIFTS["O"], SHIFTS["H"]).sum() + rng.normal()),
        forces=rng.normal(size=(size, 3)),
    )


@dataclass
class Ended:
    """How a training ended.

    Attributes:
        code: of its first process; negative for a signal.
        stderr: of all processes.
        seconds: until all of its processes had ended.
    """

    code: int
    stderr: str
    seconds: float

    @property
    def errors(self) -> list[str]:
        return [line for line in self.stderr.splitlines() if line.startswith("error: ")]


@dataclass
class Trainings:
    """Trainings by one method on the same data, from the same model.

    Attributes:
        folder: of :func:`make_inputs`' ``inputs``; each training gets a directory in it.
        method: one of :data:`METHODS`.
    """

    folder: Path
    method: str

    @property
    def processes(self) -> int:
        return METHODS[self.method][1]

    @property
    def base(self) -> Path:
        return self.folder / self.method.replace(", ", "-").replace(" ", "-")

    def start(
        self, name: str, fault: Fault | None = None, operations: Path | None = None, **keys: Any
    ) -> subprocess.Popen[str]:
        """Start a training, or continue it, in the directory ``name``, with settings beside the usual ones."""
        config = {
            "dataset": "made",
            "datasets": {"made": {"source": "made.xyz", "units": {"energy": "eV", "length": "angstrom"}}},
            "model": "tiny",
            "models": {"tiny": {"elements": list(SHIFTS)}},
            "output_path": str(self.base / name),
            "training": TRAINING | keys,
        }
        inputs = self.folder / "inputs"
        words = ["--data", inputs / "data", "--model", inputs / "model", "--statistics", inputs / "statistics.json"]
        environment = {FOLDER: str(self.base / name)} | ({FAULT: json.dumps(asdict(fault))} if fault else {})
        environment |= {OPERATIONS: str(operations)} if operations else {}
        return subprocess.Popen(
            [sys.executable, VICTIM, "train", "--config", json.dumps(config | METHODS[self.method][0]), *words],
            env=os.environ | environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, fault: Fault | None = None, operations: Path | None = None, **keys: Any) -> Ended:
        """Start a training and wait for the end of all of its processes, each of which has its stderr open."""
        start = time.monotonic()
        process = self.start(name, fault, operations, **keys)
        stderr = process.communicate(timeout=300)[1]
        return Ended(process.returncode, stderr, time.monotonic() - start)


def results(output: Path) -> dict[str, Any]:
    """What two trainings that are the same have in common, to the last bit."""
    with open(output / "history.csv") as file:
        rows = [{key: value for key, value in row.items() if key not in TIMES} for row in csv.DictReader(file)]
    newest = saved_checkpoints(output / "checkpoints")[0]
    files = [output / "model" / "weights.safetensors", *newest.glob("*.safetensors")]
    arrays = {path.name: load_file(path) for path in files}
    bits = {f"{file}/{name}": array.tobytes() for file, own in arrays.items() for name, array in own.items()}
    return {"newest": newest.name, "history": rows, "model": (output / "model/model.json").read_text()} | bits
