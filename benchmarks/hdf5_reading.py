"""Times shuffled reading of a store and of other HDF5 layouts against a warm numpy.memmap of the same padded columns.

Run ``python benchmarks/hdf5_reading.py --help`` from the repository's root; docs/performance.md explains the method.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from hdf5_layouts import LAYOUTS, MEMMAP, Reader, open_readers, write_case
from report import measured_on, publish, ratio, table, update_page
from rows import machine

from forgefield.files import write_json

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
PACKAGES = ("forgefield", "h5py", "numpy")
# name -> structures, and the fewest and the most atoms of one
CASES = {
    "21 atoms": (20_000, 21, 21),
    "27 atoms": (20_000, 27, 27),
    "370 atoms": (3_000, 370, 370),
    "1 to 300 atoms": (3_000, 1, 300),
}
BATCHES = (8, 32)
# what a batch is read into -> the head of its columns in the tables
KINDS = {"columns": "columns", "structures": "`Structure`s"}
MIB = 2**20


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    results: dict[str, Any] = {"machine": machine(PACKAGES), "cases": {}}
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases:
            start = time.monotonic()
            results["cases"][case] = _measure(case, Path(folder), options)
            write_json(options.output, results)
            print(f"{case}: measured in {time.monotonic() - start:.0f} s", flush=True)
    text = markdown(results)
    publish(text, options.output)
    if options.update_docs:
        update_page(PAGE, Path(__file__).name, text)
    return 0


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Options from the command line; without any, those of the tables in docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=tuple(CASES), choices=CASES)
    parser.add_argument("--layouts", nargs="+", default=tuple(LAYOUTS), choices=LAYOUTS, help="beside the memmap")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each layout (%(default)s)")
    parser.add_argument("--turn-seconds", type=float, default=0.25, help="after which a turn ends (%(default)s)")
    parser.add_argument("--update-docs", action="store_true", help=f"write the tables into {PAGE.name} as well")
    parser.add_argument(
        "--output", type=Path, default=Path("results/benchmarks/hdf5_reading.json"), help="(%(default)s)"
    )
    return parser.parse_args(words)


def _measure(case: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    n, least, most = CASES[case]
    with ExitStack() as stack:
        paths = write_case(folder, n, least, most, options.layouts)
        readers = open_readers(stack, paths)
        rates = {kind: {str(batch): _rates(readers, kind, n, batch, options) for batch in BATCHES} for kind in KINDS}
    row_bytes = sum(values.nbytes for values in readers[MEMMAP].columns(np.arange(1)).values())
    sizes = {layout: os.path.getsize(path) for layout, path in paths.items()}
    for path in set(paths.values()):
        path.unlink()
    return {"structures": n, "row_bytes": row_bytes, "file_bytes": sizes, "structures_per_second": rates}


def _rates(
    readers: dict[str, Reader], kind: str, n: int, batch: int, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Structures per second of every layout, turn by turn."""
    calls = {layout: getattr(reader, kind) for layout, reader in readers.items() if getattr(reader, kind)}
    rates: dict[str, list[float]] = {layout: [] for layout in calls}
    random = np.random.default_rng(0)
    for turn in range(options.rounds + 1):
        order = random.permutation(n)
        for layout, call in calls.items():
            rate = _rate(call, (order[i : i + batch] for i in range(0, n, batch)), options.turn_seconds)
            if turn > 0:  # the first one warms up
                rates[layout].append(rate)
    return rates


def _rate(call: Callable[[np.ndarray], object], batches: Iterable[np.ndarray], limit: float) -> float:
    """Structures per second over an epoch, or over as much of it as the limit allows."""
    done, start = 0, time.perf_counter()
    for rows in batches:
        call(rows)
        done += len(rows)
        if (seconds := time.perf_counter() - start) > limit:
            break
    return done / seconds


def markdown(results: dict[str, Any]) -> str:
    """A table for each case, a row for each layout."""
    parts = [measured_on(results["machine"])]
    for case, measured in results["cases"].items():
        parts.append(f"### {measured['structures']} structures of {case}\n\n" + _table(measured))
    return "\n\n".join(parts) + "\n"


def _table(measured: dict[str, Any]) -> str:
    rates = measured["structures_per_second"]
    accesses = [(kind, batch) for kind in KINDS for batch in rates[kind]]
    last = max(rates["columns"], key=int)
    head = ["layout", "file, MiB", f"columns/s, batch {last}", "MiB/s"]
    head += [f"{KINDS[kind]}, batch {batch}: ratio" for kind, batch in accesses]
    lines = []
    for layout, size in measured["file_bytes"].items():
        rate = median(rates["columns"][last][layout])
        cells = [f"{size / MIB:.1f}", f"{rate:.0f}", f"{rate * measured['row_bytes'] / MIB:.0f}"]
        for kind, batch in accesses:
            found = rates[kind][batch]
            cells.append(ratio(found[layout], found[MEMMAP], 2) if layout in found else "")
        lines.append([layout, *cells])
    return table(head, lines, words=1)


if __name__ == "__main__":
    sys.exit(main())
