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

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from forgefield.evaluation.style import BLUE, COLUMN, GREEN, GREY, ORANGE, STYLE
from forgefield.files import atomic_file, write_json
from forgefield.launch.starting import AS_ROOT

WORKER = Path(__file__).with_name("device_worker.py")
LABELS = {"mpi": "MPI ranks", "jax": "devices of one process"}
METHODS = tuple(LABELS)
LOOKS = (BLUE, ORANGE, GREEN, "#CC79A7")
Table = dict[str, dict[str, Any]]
Curves = dict[str, list[tuple[int, float, float, float]]]
"""By name: numbers of devices, and what they give: median, least and most of the rounds."""


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


def compare(training: Training, options: argparse.Namespace) -> Table:
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
    write_picture(scaling_figure(curves(table, options.devices)), options.output.with_suffix(".png"))
    return table


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


def curves(table: Table, devices: Sequence[int]) -> Curves:
    """What so many devices give, by method."""
    found: Curves = {}
    for method, label in LABELS.items():
        rates = [table[f"{method} {n}"]["structures_per_second"] for n in devices]
        gains = [[rate / base for base, rate in zip(rates[0], of_n, strict=True)] for of_n in rates]
        found[label] = [(n, median(of_n), min(of_n), max(of_n)) for n, of_n in zip(devices, gains, strict=True)]
    return found


@rc_context(STYLE)
def scaling_figure(curves: Curves) -> Figure:
    """Throughput over devices, relative to the least number of them; bars reach from the worst round to the best."""
    figure = Figure(figsize=(COLUMN, 3.6), layout="constrained")
    axes = figure.subplots()
    devices = sorted({n for points in curves.values() for n, *_ in points})
    axes.plot(devices, [n / devices[0] for n in devices], color=GREY, linestyle=":", label="ideal")
    for number, (label, points) in enumerate(curves.items()):
        n, medians, low, high = np.array(points).T
        apart = 0.02 * (number - (len(curves) - 1) / 2) * devices[-1]  # of bars that would lie over one another
        look = {"color": LOOKS[number % len(LOOKS)], "marker": "os"[number % 2], "markersize": 4, "capsize": 2}
        axes.errorbar(n + apart * (n > devices[0]), medians, [medians - low, high - medians], label=label, **look)
    axes.set(xlabel="devices", ylabel=f"throughput / that of {_words(devices[0])}", xticks=devices, ylim=(0, None))
    figure.legend(loc="outside lower center", handlelength=1.6)
    return figure


def write_picture(figure: Figure, path: Path) -> None:
    """In the format of the path's suffix; equal numbers give equal bytes."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with rc_context(STYLE), atomic_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], dpi=200, metadata=metadata)
