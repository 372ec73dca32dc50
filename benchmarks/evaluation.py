"""Times ``forgefield test`` on one device and on two, beside ``mace_eval_configs`` on the same model and structures.

Run ``python benchmarks/evaluation.py --help`` from the repository's root; docs/performance.md explains the method.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import ase.io
import h5py
import numpy as np
import torch
import yaml
from fabric_programs import START, Training, write_data, write_start
from report import measured_on, publish, ratio, table, update_page
from rows import machine

from forgefield.config.model import ModelConfig
from forgefield.files import sha256_of, write_json
from forgefield.models.foundation import import_model
from forgefield.models.potential import load_potential, save_potential

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
FORGEFIELD, MACE = (Path(sys.executable).with_name(name) for name in ("forgefield", "mace_eval_configs"))
PACKAGES = ("forgefield", "jax", "torch", "mace-torch")
METHODS = {
    "mpi": ("parallelism=mpi",),
    "local devices": ("parallelism=jax",),
    "fabric": ("backend=fabric",),
}
ALONE, THEIRS = "forgefield", "mace_eval_configs"
HEAD = ("program", "cores", "whole, s", "start, s", "structures/s", "times forgefield on 1", "without the start")
AGREEMENT = 1e-6  # eV/Å
Seconds = dict[str, dict[str, list[float]]]


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    results: dict[str, Any] = {"machine": machine(PACKAGES), "structures": options.structures}
    results |= {"few": options.few, "batch": options.batch, "channels": options.channels}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results["origin"] = prepare(folder, options)
        programs = {ALONE: 1, THEIRS: 1, f"{THEIRS}, 2 threads": 2} | dict.fromkeys(options.methods, 2)
        seconds: Seconds = {program: {"many": [], "few": []} for program in programs}
        for program in programs:  # compiles, converts, and shows that both compute the same
            for size in ("few", "many"):
                timed(program, size, 2, folder, options)
        results["difference"] = difference(folder)
        for number in range(options.rounds):
            for program in (list(programs), list(reversed(programs)))[number % 2]:
                for size in ("few", "many"):
                    seconds[program][size].append(timed(program, size, programs[program], folder, options))
                print(f"round {number + 1}: {program}: {seconds[program]['many'][-1]:.1f} s", flush=True)
            results |= {"seconds": seconds, "cores": programs}
            write_json(options.output, results)
    text = markdown(results)
    publish(text, options.output)
    if options.update_docs:
        update_page(PAGE, Path(__file__).name, text)
    return 0


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Options from the command line; without any, those of the table in docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--structures", type=int, default=4000, help="(%(default)s)")
    parser.add_argument("--few", type=int, default=64, help="structures that show what a start costs (%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="structures at once (%(default)s)")
    parser.add_argument("--channels", type=int, default=64, help="scalar features of a node (%(default)s)")
    parser.add_argument("--methods", nargs="*", default=tuple(METHODS), choices=METHODS, help="on two devices")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each program (%(default)s)")
    parser.add_argument("--update-docs", action="store_true", help=f"write the table into {PAGE.name} as well")
    parser.add_argument("--output", type=Path, default=Path("results/benchmarks/evaluation.json"), help="(%(default)s)")
    return parser.parse_args(words)


def prepare(folder: Path, options: argparse.Namespace) -> str:
    """Structures, mace-torch's model, and for forgefield the same model as if it had been trained from scratch."""
    origin = ""
    for size, n in (("many", options.structures), ("few", options.few)):
        training = Training({"train": 2, "valid": 2, "test": n}, options.batch, 1, "float64", options.channels)
        (folder / size).mkdir()
        elements, origin = write_data(training, folder / size)
        run = {f"{split}_path": f"{split}.extxyz" for split in ("train", "valid", "test")}
        model = {"foundation": f"../{START}", "sha256": ""}
        if size == "many":
            torch.set_default_dtype(torch.float64)  # that of the weights, which mace_eval_configs does not convert
            write_start(training, elements, folder)
        model["sha256"] = sha256_of(folder / START)
        settings = {"batch": 2, "eval_batch": options.batch}
        run |= {"output_path": "run", "models": {"model": model}, "training": settings}
        (folder / size / "run.yaml").write_text(yaml.safe_dump(run | {"evaluation": {"splits": ["test"]}}))
    entry = ModelConfig(foundation=str(folder / START), sha256=sha256_of(folder / START))
    import_model("model", entry, folder / "imported")
    scratch = replace(load_potential(folder / "imported"), pretrained=False)
    for place in ("scratch", "many/run/model", "few/run/model"):
        save_potential(scratch, folder / place)
    return origin


def timed(program: str, size: str, cores: int, folder: Path, options: argparse.Namespace) -> float:
    """Seconds of the whole program on so many cores."""
    allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    if program.startswith(THEIRS):
        words = [MACE, "--configs=test.extxyz", f"--model=../{START}", "--output=theirs.xyz", "--device=cpu"]
        words += ["--default_dtype=float64", f"--batch_size={options.batch}"]
    else:
        method = ["devices=2", *METHODS[program]] if program in METHODS else ["devices=1"]
        words = [FORGEFIELD, "test", "run.yaml", "--model", "../scratch", *method]
    command = ["taskset", "--cpu-list", allowed, sys.executable, *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": str(cores)} if program.startswith(THEIRS) else os.environ
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder / size, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return seconds


def difference(folder: Path) -> float:
    """The largest difference between both programs' forces, eV/Å."""
    theirs = [atoms.arrays["MACE_forces"] for atoms in ase.io.iread(folder / "many" / "theirs.xyz", ":")]
    with h5py.File(folder / "many" / "run" / "predictions_test.h5") as file:
        found = float(np.abs(file["trained/forces"][()] - np.stack(theirs)).max())
    if found > AGREEMENT:
        raise SystemExit(f"forces differ by {found:.1e} eV/Å, so the programs do not compute the same")
    return found


def markdown(results: dict[str, Any]) -> str:
    """The table."""
    seconds, more = results["seconds"], results["structures"] - results["few"]
    alone = [seconds[ALONE]["many"], net(seconds[ALONE])]
    lines = []
    for program, cores in results["cores"].items():
        own = seconds[program]
        rate = more / median(net(own))
        numbers = [f"{median(own['many']):.1f}", f"{median(own['few']):.1f}", f"{rate:.0f}"]
        ratios = [ratio(base, values, 2) for base, values in zip(alone, (own["many"], net(own)), strict=True)]
        name = program if program.startswith((ALONE, THEIRS)) else f"forgefield, {program}"
        lines.append([name, str(cores), *numbers, *ratios])
    what = (
        f"{results['structures']:,} structures of 3BPA ({results['origin']}), {results['channels']} features, float64, "
        f"{results['batch']} structures at once; a start is the same with {results['few']} structures. Forces differ "
        f"by at most {results['difference']:.0e} eV/Å."
    )
    return "\n\n".join([f"{measured_on(results['machine'])} {what}", table(HEAD, lines, 1)]) + "\n"


def net(seconds: dict[str, list[float]]) -> list[float]:
    """What the structures beyond the few took, by round."""
    return [many - few for many, few in zip(seconds["many"], seconds["few"], strict=True)]


if __name__ == "__main__":
    sys.exit(main())
