"""Times forgefield's MACE in JAX against mace-torch: training steps and inference of the same model, side by side.

Run ``python benchmarks/mace_step.py --help`` from the repository's root; docs/performance.md explains the method.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import models
from agreement import DisagreementError
from measure import Job, compare, compare_allocators, memory
from report import markdown, publish, update_page
from rows import Results, Row
from systems import SYSTEMS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
CORES = 2
TABLE_SYSTEMS = ("3bpa", "catcher", "mgo")
PRECISIONS = ("float32", "float64")
# inference first: the check of a training step needs its compiled function too, and finds it on disk
MODES = ("inference", "train", "allocator", "memory")
MEMORY_STEPS, MEMORY_MARKS = 2000, (0.1, 0.5, 1.0)


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    # inherited by the workers, whose pools have a thread for each core
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    results, rows, refused = Results(options.output), selected_rows(options), False
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            start = time.monotonic()
            try:
                results.add(row, _measure(row, Path(folder), options))
            except DisagreementError as error:
                print(f"{' '.join(row)}: not timed, for the two sides disagree: {error}", flush=True)
                results.discard(row)
                refused = True
            else:
                print(f"{' '.join(row)}: measured in {time.monotonic() - start:.0f} s", flush=True)
    text = markdown(results, rows)
    publish(text, options.output)
    if options.update_docs:
        update_page(PAGE, Path(__file__).name, markdown(results, selected_rows(parse([]))))
    return int(refused)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Options from the command line; without any, those of the tables in docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--models", nargs="+", default=models.MODELS, type=models.model_name, help="such as 64x0e or 64x0e+64x1o"
    )
    parser.add_argument("--systems", nargs="+", default=TABLE_SYSTEMS, choices=SYSTEMS)
    parser.add_argument("--precision", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    parser.add_argument("--mode", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (%(default)s)")
    parser.add_argument("--memory-steps", type=int, metavar="N", help="only follow the memory of N training steps")
    parser.add_argument("--update-docs", action="store_true", help=f"write the tables into {PAGE.name} as well")
    parser.add_argument("--output", type=Path, default=Path("results/benchmarks/mace_step.json"), help="(%(default)s)")
    return parser.parse_args(words)


def selected_rows(options: argparse.Namespace) -> list[Row]:
    """Every combination; of the allocator those with the first system and precision, of memory the very first."""
    names, systems, precisions = options.models, options.systems, options.precision
    modes = ("memory",) if options.memory_steps else options.mode
    rows = [Row(*key) for key in product(names, systems, precisions, modes)]
    return [row for row in rows if _is_wanted(row, Row(names[0], systems[0], precisions[0], row.mode))]


def _is_wanted(row: Row, first: Row) -> bool:
    if row.mode == "memory":
        return row == first
    return row.mode != "allocator" or row[1:] == first[1:]


def _measure(row: Row, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    case = folder / f"{row.model}-{row.system}"
    if not case.exists():
        from preparation import write_case  # PyTorch takes seconds to load

        write_case(case, row.model, row.system)
    system = SYSTEMS[row.system]()
    job = Job(case, row.precision, "inference" if row.mode == "inference" else "train", options.rounds)
    if row.mode == "memory":
        steps = options.memory_steps or MEMORY_STEPS
        measured = memory(job, tuple(int(share * steps) for share in MEMORY_MARKS))
    else:
        measured = (compare_allocators if row.mode == "allocator" else compare)(job)
    return {"title": system.title, "origin": system.origin, "structures": system.batch, **measured}


if __name__ == "__main__":
    sys.exit(main())
