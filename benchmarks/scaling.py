"""Times the same training on 1, 2 and 4 devices, by JAX in one process and by MPI with one rank for each.

The dataset, global batch, model and precision are the same in all runs, each device has one core, and the epoch that
compiles is left out. Runs take turns. For MPI the slowest rank counts. Run ``python benchmarks/scaling.py --help``
from the repository's root.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

import matplotlib.pyplot as plt
import models
import numpy as np
from systems import SYSTEMS

from forgefield.data.store import StoreWriter
from forgefield.files import atomic_file, write_json
from forgefield.launch import AS_ROOT
from forgefield.models.potential import save_potential
from forgefield.units import Units

WORKER = Path(__file__).with_name("scaling_worker.py")
METHODS = ("jax", "mpi")
AVERAGE_NEIGHBORS = 16.5


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, options)
        runs = {f"{method} {n}": [] for method in METHODS for n in options.devices}
        for number in range(options.rounds):
            for method in METHODS:
                for n in options.devices:
                    runs[f"{method} {n}"].append(run(folder, method, n, options))
                    print(
                        f"round {number + 1}: {method}, {n} devices: {runs[f'{method} {n}'][-1]:.1f} structures/s",
                        flush=True,
                    )
    table = {key: {"structures_per_second": rates, "median": median(rates)} for key, rates in runs.items()}
    for method in METHODS:
        base = table[f"{method} {options.devices[0]}"]["structures_per_second"]
        for n in options.devices:
            row = table[f"{method} {n}"]
            row["speedup"] = median(b / a for a, b in zip(base, row["structures_per_second"], strict=True))
            print(f"{method}, {n} devices: {row['median']:.1f} structures/s, {row['speedup']:.2f} times one device")
    write_json(options.output, {"settings": {k: str(v) for k, v in vars(options).items()}, "runs": table})
    plot(table, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--devices", type=int, nargs="+", default=[n for n in (1, 2, 4) if n <= cores], help="%(default)s"
    )
    parser.add_argument("--model", default="64x0e", type=models.model_name)
    parser.add_argument("--system", default="3bpa", choices=SYSTEMS)
    parser.add_argument("--structures", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8, help="over all devices (%(default)s)")
    parser.add_argument("--epochs", type=int, default=4, help="of which the first is left out (%(default)s)")
    parser.add_argument("--precision", default="float32", choices=("float32", "float64"))
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=Path("results/benchmarks/scaling.json"), help="(%(default)s)")
    return parser.parse_args()


def write_inputs(folder: Path, options: argparse.Namespace) -> None:
    """A store of the system's structures, without forces or energy, and the model."""
    pool = SYSTEMS[options.system]().pool
    chosen = [
        replace(pool[i % len(pool)], energy=0.0, forces=np.zeros_like(pool[0].positions))
        for i in range(options.structures)
    ]
    settings = {"units": Units(), "dtype": np.float64, "has_virial": False, "attributes": {}}
    with StoreWriter(folder / "train.h5", n_structures=len(chosen), max_atoms=max(map(len, chosen)), **settings) as new:
        new.append(chosen)
    elements = tuple(sorted({int(z) for s in chosen for z in s.numbers}))
    save_potential(models.potential(options.model, elements, AVERAGE_NEIGHBORS), folder / "model")


def run(folder: Path, method: str, devices: int, options: argparse.Namespace) -> float:
    """Structures per second of one training."""
    output = folder / "found.json"
    words = [WORKER, folder / "train.h5", folder / "model", "--output", output, "--parallelism", method]
    words += ["--batch", options.batch, "--epochs", options.epochs, "--precision", options.precision]
    command = [sys.executable, *map(str, words)]
    if method == "mpi":
        mpirun = [str(Path(sys.executable).with_name("mpirun")), "--bind-to", "core", "--map-by", "core"]
        command = [*mpirun, "-n", str(devices), *command]
    else:
        command += ["--devices", str(devices)]
    cores = sorted(os.sched_getaffinity(0))[:devices]
    environment = os.environ | AS_ROOT | {"JAX_COMPILATION_CACHE_DIR": str(folder / "compiled")}
    subprocess.run(command, check=True, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    found = json.loads(output.read_text())
    assert found["devices"] == devices
    return options.batch * found["steps"] / median(found["seconds"][1:])


def plot(table: dict, options: argparse.Namespace) -> None:
    figure, axes = plt.subplots(figsize=(4, 3), layout="constrained")
    for method, mark in zip(METHODS, "os", strict=True):
        axes.plot(
            options.devices, [table[f"{method} {n}"]["speedup"] for n in options.devices], f"{mark}-", label=method
        )
    axes.plot(options.devices, options.devices, "k:", label="ideal")
    axes.set(xlabel="devices", ylabel="throughput, times one device", xticks=options.devices)
    axes.legend()
    with atomic_file(options.output.with_suffix(".png")) as temporary:
        figure.savefig(temporary, dpi=150, format="png")


if __name__ == "__main__":
    main()
