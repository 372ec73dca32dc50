"""Times trainings by backend fabric beside ``mace_run_train`` and ``flashcart-train``, and on one and two devices.

Run ``python benchmarks/fabric_epoch.py --help`` from the repository's root; docs/performance.md explains the method.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from fabric_programs import OTHERS, SPLITS, Training, of_forgefield, write_data, write_start
from report import measured_on, publish, ratio, table, update_page
from rows import machine

from forgefield.files import write_json

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
FORGEFIELD = Path(sys.executable).with_name("forgefield")
CLOCK = Path(__file__).with_name("timed_program.py")
PACKAGES = ("forgefield", "torch", "lightning", "mace-torch", "flashcart")
CORES = 2
HEAD = ("model", "program", "epoch, s", "theirs / ours", "first step after, s", "theirs / ours")
DEVICES_HEAD = ("model", "devices and cores", "epoch, s", "times one")


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    sizes = dict(zip(SPLITS, options.structures, strict=True))
    training = Training(sizes, options.batch, options.epochs, options.precision, options.channels)
    results: dict[str, Any] = {"machine": machine(PACKAGES), "training": vars(training), "models": {}}
    results["devices_batch"] = options.devices_batch
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        elements, results["origin"] = write_data(training, folder)
        write_start(training, elements, folder)
        for model in options.models:
            programs = compare(model, training, elements, folder, options.rounds)
            larger = replace(training, batch=options.devices_batch)
            devices = compare_devices(model, larger, elements, folder, options.rounds)
            results["models"][model] = {"programs": programs, "devices": devices}
            write_json(options.output, results)
    text = markdown(results)
    publish(text, options.output)
    if options.update_docs:
        update_page(PAGE, Path(__file__).name, text)
    return 0


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Options from the command line; without any, those of the tables in docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=tuple(OTHERS), choices=OTHERS)
    parser.add_argument("--structures", nargs=3, type=int, default=(240, 60, 4), metavar="N", help=f"of {SPLITS}")
    parser.add_argument("--batch", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--devices-batch", type=int, default=32, help="of the table of devices (%(default)s)")
    parser.add_argument("--channels", type=int, default=64, help="scalar features of a node (%(default)s)")
    parser.add_argument("--precision", default="float32", choices=("float32", "float64"))
    parser.add_argument("--epochs", type=int, default=4, help="the median of all but the first counts (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (%(default)s)")
    parser.add_argument("--update-docs", action="store_true", help=f"write the tables into {PAGE.name} as well")
    parser.add_argument(
        "--output", type=Path, default=Path("results/benchmarks/fabric_epoch.json"), help="(%(default)s)"
    )
    return parser.parse_args(words)


def compare(model: str, training: Training, elements: list[str], folder: Path, rounds: int) -> dict[str, Any]:
    """Seconds per epoch and until the first step of forgefield and the other program, by program and round."""
    name, words_of = OTHERS[model]
    found: dict[str, list[dict[str, float]]] = {"forgefield": [], name: []}
    for number in range(rounds):
        for program in (list(found), list(reversed(found)))[number % 2]:
            with tempfile.TemporaryDirectory(dir=folder) as own:
                words = (
                    of_forgefield(model, training, elements, Path(own))
                    if program == "forgefield"
                    else words_of(training, elements, Path(own))
                )
                found[program].append(timed(program, words, training, Path(own)))
            print(f"round {number + 1}: {model}, {program}: {found[program][-1]}", flush=True)
    parameters = {program: runs[0].pop("parameters") for program, runs in found.items()}
    if len(set(parameters.values())) > 1:
        raise SystemExit(f"{model}: the programs train models of different size, {parameters}")
    return found


def timed(program: str, words: list[str], training: Training, folder: Path) -> dict[str, float]:
    """Run a program on so many cores: its time per epoch, validation included, and until its first step has ended."""
    start = time.time()
    run([str(CLOCK), "times.json", program, *words], CORES, folder)
    content = json.loads((folder / "times.json").read_text())
    ends = content["steps"][training.steps - 1 :: training.steps]
    if len(content["steps"]) != training.steps * training.epochs:
        raise SystemExit(f"{program}: {len(content['steps'])} steps, expected {training.steps * training.epochs}")
    epochs = [after - before for before, after in pairwise(ends)]
    return {
        "epoch": median(epochs),
        "first_step": content["steps"][0] - start,
        "parameters": content["parameters"],
    }


def compare_devices(model: str, training: Training, elements: list[str], folder: Path, rounds: int) -> dict[str, Any]:
    """Seconds per epoch of forgefield on one and on two devices, a core for each, by their number and round."""
    found: dict[str, list[float]] = {str(n): [] for n in range(1, CORES + 1)}
    for number in range(rounds):
        for n, seconds in found.items():
            with tempfile.TemporaryDirectory(dir=folder) as own:
                words = of_forgefield(model, training, elements, Path(own))
                run([str(FORGEFIELD), *words, f"devices={n}"], int(n), Path(own))
                with open(Path(own) / "run" / "history.csv") as file:
                    seconds.append(median(float(row["seconds"]) for row in list(csv.DictReader(file))[1:]))
            print(f"round {number + 1}: {model}, {n} devices: {seconds[-1]:.2f} s", flush=True)
    return found


def run(words: list[str], cores: int, folder: Path) -> None:
    """Run Python with these words on so many cores; what it says is shown only where it fails."""
    allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    command = ["taskset", "--cpu-list", allowed, sys.executable, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def markdown(results: dict[str, Any]) -> str:
    """The tables."""
    programs, devices = [], []
    for model, found in results["models"].items():
        ours = found["programs"]["forgefield"]
        for program, runs in found["programs"].items():
            cells = []
            for key in ("epoch", "first_step"):
                own, base = ([one[key] for one in side] for side in (runs, ours))
                cells += [f"{median(own):.2f}", ratio(own, base, 2)]
            programs.append([model, program, *cells])
        for n, seconds in found["devices"].items():
            devices.append([model, n, f"{median(seconds):.2f}", ratio(found["devices"]["1"], seconds, 2)])
    training = results["training"]
    what = (
        f"{training['structures']['train']} structures of 3BPA ({results['origin']}) for training and "
        f"{training['structures']['valid']} for validation, batches of {training['batch']} "
        f"({results['devices_batch']} where devices are compared), {training['channels']} features, "
        f"{training['precision']}."
    )
    parts = [f"{measured_on(results['machine'])} {what}", table(HEAD, programs, 2), table(DEVICES_HEAD, devices, 1)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
