"""The same training on several numbers of devices, by JAX in one process and by MPI with one rank for each."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib.pyplot as plt

from forgefield.files import atomic_file, write_json
from forgefield.launch.starting import AS_ROOT

WORKER = Path(__file__).with_name("device_worker.py")
METHODS = ("jax", "mpi")
Table = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Training:
    """What is timed: so many epochs of a store and a model, of which all but the first count by their median."""

    store: Path
    model: Path
    batch: int
    epochs: int
    precision: str


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """The options that the benchmarks of several devices share; ``name`` is that of the files of results."""
    cores = len(os.sched_getaffinity(0))
    possible = [n for n in (1, 2, 4) if n <= cores]
    parser.add_argument("--devices", type=int, nargs="+", default=possible, help="%(default)s")
    parser.add_argument("--epochs", type=int, default=7, help="the median of all but the first counts (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--output", type=Path, default=Path(f"results/benchmarks/{name}.json"), help="(%(default)s)")


def compare(training: Training, options: argparse.Namespace) -> None:
    """Time all in turns, print a table and write it, with a plot beside it.

    Round 0 compiles, and does not count: what LLVM leaves behind in memory slows several devices of one process down.
    """
    runs: dict[str, list[dict[str, float]]] = {}
    for number in range(options.rounds + 1):
        for method in METHODS:
            for n in options.devices:
                found = run(training, method, n)
                if number:
                    runs.setdefault(f"{method} {n}", []).append(found)
                print(f"round {number}: {method}, {_words(n)}: {found['rate']:.2f} structures/s", flush=True)
    table = summary(runs, options.devices)
    for method in METHODS:
        for n in options.devices:
            row = table[f"{method} {n}"]
            print(
                f"{method}, {_words(n)}: {row['median']:.2f} structures/s, {row['speedup']:.2f} times one run on"
                f" {_words(options.devices[0])}; a step waits {row['data_wait_ms_per_step']:.3f} ms for data"
            )
    write_json(options.output, {"settings": {k: str(v) for k, v in vars(options).items()}, "runs": table})
    plot(table, options.devices, options.output.with_suffix(".png"))


def run(training: Training, method: str, devices: int) -> dict[str, float]:
    """Structures per second of one training (``rate``), and how long a step of it waits for data (``wait``, ms)."""
    folder = training.store.parent
    output = folder / "found.json"
    words = [WORKER, training.store, training.model, "--output", output, "--parallelism", method]
    words += ["--batch", training.batch, "--epochs", training.epochs, "--precision", training.precision]
    command = [sys.executable, *map(str, words)]
    if method == "mpi":
        mpirun = [str(Path(sys.executable).with_name("mpirun")), "--bind-to", "core", "--map-by", "core"]
        command = [*mpirun, "-n", str(devices), *command]
    else:
        command += ["--devices", str(devices)]
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:devices]))
    environment = os.environ | AS_ROOT | {"JAX_COMPILATION_CACHE_DIR": str(folder / "compiled")}
    subprocess.run(["taskset", "--cpu-list", cores, *command], check=True, env=environment)
    found = json.loads(output.read_text())
    assert found["devices"] == devices
    rate = found["structures"] / median(found["seconds"][1:])
    return {"rate": rate, "wait": median(found["data_wait_ms_per_step"][1:])}


def summary(runs: dict[str, list[dict[str, float]]], devices: Sequence[int]) -> Table:
    """Rates of all rounds, and medians of the rounds' rates, speedups and waits, by method and number of devices."""
    table = {}
    for method in METHODS:
        base = [found["rate"] for found in runs[f"{method} {devices[0]}"]]
        for n in devices:
            found = runs[f"{method} {n}"]
            rates = [one["rate"] for one in found]
            table[f"{method} {n}"] = {
                "structures_per_second": rates,
                "median": median(rates),
                "speedup": median(b / a for a, b in zip(base, rates, strict=True)),
                "data_wait_ms_per_step": median(one["wait"] for one in found),
            }
    return table


def _words(devices: int) -> str:
    return f"{devices} device{'s' if devices > 1 else ''}"


def plot(table: Table, devices: Sequence[int], path: Path) -> None:
    """Throughput over devices, relative to the first number of them."""
    figure, axes = plt.subplots(figsize=(4, 3), layout="constrained")
    for method, mark in zip(METHODS, "os", strict=True):
        axes.plot(devices, [table[f"{method} {n}"]["speedup"] for n in devices], f"{mark}-", label=method)
    axes.plot(devices, [n / devices[0] for n in devices], "k:", label="ideal")
    axes.set(xlabel="devices", ylabel=f"throughput, times {_words(devices[0])}", xticks=devices)
    axes.legend()
    with atomic_file(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")
