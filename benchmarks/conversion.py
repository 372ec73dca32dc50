"""Times the conversion of extended XYZ files against bare ``ase.io.iread`` of the same files, and measures its memory.

Run ``python benchmarks/conversion.py --help`` from the repository's root; docs/performance.md explains the method.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from report import measured_on, publish, ratio, table, update_page
from rows import machine

from forgefield.files import write_json

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
PACKAGES = ("forgefield", "ase", "h5py", "numpy")
# name -> atoms of a structure, and whether it is periodic
CASES = {"27 atoms": (27, False), "148 atoms": (148, False), "192 atoms, periodic": (192, True)}
MIB = 2**20
SPACING = 2.0  # Å, between the points of a grid that atoms are put near to
Turn = dict[str, float]


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    results: dict[str, Any] = {"machine": machine(PACKAGES), "cases": {}, "sizes": {}}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "a.xyz"
        for case in options.cases:
            write_file(path, int(options.mib * MIB), *CASES[case])
            results["cases"][case] = _turns(path, options)
            write_json(options.output, results)
        for mib in options.sizes:
            write_file(path, int(mib * MIB), *CASES[options.cases[0]])
            results["sizes"][f"{mib:g}"] = {str(jobs): run("convert", path, jobs) for jobs in options.jobs}
            write_json(options.output, results)
    text = markdown(results)
    publish(text, options.output)
    if options.update_docs:
        update_page(PAGE, Path(__file__).name, text)
    return 0


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Options from the command line; without any, those of the tables in docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=tuple(CASES), choices=CASES)
    parser.add_argument("--mib", type=float, default=100, help="size of the files that are timed (%(default)s)")
    parser.add_argument("--sizes", nargs="*", type=float, default=(8, 64, 256), help="MiB, where memory is measured")
    parser.add_argument("--jobs", nargs="+", type=int, default=(1, 2), help="processes that convert (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (%(default)s)")
    parser.add_argument("--folder", help="for the files; else that of the system's temporary files")
    parser.add_argument("--update-docs", action="store_true", help=f"write the tables into {PAGE.name} as well")
    parser.add_argument("--output", type=Path, default=Path("results/benchmarks/conversion.json"), help="(%(default)s)")
    return parser.parse_args(words)


def write_file(path: Path, size: int, n_atoms: int, periodic: bool) -> None:
    """At least so many bytes of random structures with energies and forces, no two alike."""
    random = np.random.default_rng(0)
    side = int(np.ceil(n_atoms ** (1 / 3)))
    grid = SPACING * np.stack(np.unravel_index(np.arange(n_atoms), (side, side, side)), axis=1)
    length = SPACING * side
    cell = f'Lattice="{length} 0 0 0 {length} 0 0 0 {length}" ' if periodic else ""
    elements = random.choice(["H", "C", "N", "O"], n_atoms)
    line = "".join(f"{symbol} %.8f %.8f %.8f %.8f %.8f %.8f\n" for symbol in elements)
    pbc = "T T T" if periodic else "F F F"
    head = f'{n_atoms}\n{cell}Properties=species:S:1:pos:R:3:forces:R:3 energy=%.8f pbc="{pbc}"\n'
    with open(path, "w") as file:
        while file.tell() < size:
            numbers = np.concatenate([grid + random.normal(0, 0.1, grid.shape), random.normal(size=grid.shape)], axis=1)
            file.write(head % (-900.0 * n_atoms + random.normal()) + line % tuple(numbers.ravel()))


def run(side: str, path: Path, jobs: int) -> Turn:
    """A side in a process of its own, so that each has its own peak of memory."""
    worker = Path(__file__).with_name("conversion_side.py")
    words = [sys.executable, str(worker), side, str(path), str(jobs)]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _turns(path: Path, options: argparse.Namespace) -> dict[str, list[Turn]]:
    """What each side needs, turn by turn."""
    sides = {"ase": ("ase", 1)} | {str(jobs): ("convert", jobs) for jobs in options.jobs}
    turns: dict[str, list[Turn]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, (side, jobs) in sides.items():
            turns[name].append(run(side, path, jobs))
    return turns


def markdown(results: dict[str, Any]) -> str:
    """Tables of speed and of memory."""
    parts = [measured_on(results["machine"])]
    head = [
        "structures of",
        "frames",
        "iread, frames/s",
        "processes",
        "frames/s",
        "ratio to iread",
        "of the CPU time of all processes",
        "runs",
    ]
    lines = [cells for case, turns in results["cases"].items() for cells in _speed(case, turns)]
    parts.append("### Converting, against reading by ASE\n\n" + table(head, lines, words=1))
    if results["sizes"]:
        lines = [
            [size, f"{turn['frames']}", jobs, f"{turn['peak_MiB']:.0f}"]
            for size, by_jobs in results["sizes"].items()
            for jobs, turn in by_jobs.items()
        ]
        head = ["file, MiB", "frames", "processes", "peak memory, MiB"]
        parts.append("### Memory of a conversion\n\n" + table(head, lines, words=0))
    return "\n\n".join(parts) + "\n"


def _speed(case: str, turns: dict[str, list[Turn]]) -> list[list[str]]:
    """A row for each number of processes; the ratios are of rates, so above 1 is faster than ASE."""
    ase = turns["ase"]
    n = f"{ase[0]['frames']:.0f}"
    rows = []
    for jobs, found in turns.items():
        if jobs != "ase":
            ratios = [ratio([t[key] for t in ase], [t[key] for t in found], 2) for key in ("seconds", "cpu_seconds")]
            rows.append([case, n, _rate(ase), jobs, _rate(found), *ratios, str(len(found))])
    return rows


def _rate(turns: list[Turn]) -> str:
    return f"{median(turn['frames'] / turn['seconds'] for turn in turns):.0f}"


if __name__ == "__main__":
    sys.exit(main())
