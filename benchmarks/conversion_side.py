"""One side of conversion.py, in a process of its own: SIDE FILE JOBS; prints frames, seconds and memory as JSON."""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import ase.io

from forgefield.config.dataset import DatasetConfig
from forgefield.data.convert import convert_dataset


def main(side: str, path: str, jobs: str) -> None:
    start, before = time.perf_counter(), _cpu_seconds()
    if side == "ase":
        frames = sum(1 for _ in ase.io.iread(path, ":", "extxyz"))
    else:
        with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
            report = convert_dataset("benchmark", DatasetConfig(source=path), Path(folder) / "out", jobs=int(jobs))
        frames = report["frames"]["usable"]
    seconds, cpu = time.perf_counter() - start, _cpu_seconds() - before
    own, child = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # the kernel knows only the largest of the children; beside those that convert there are small ones
    peak = own.ru_maxrss + (int(jobs) - 1) * child.ru_maxrss
    print(json.dumps({"frames": frames, "seconds": seconds, "cpu_seconds": cpu, "peak_MiB": peak / 1024}))


def _cpu_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


if __name__ == "__main__":
    main(*sys.argv[1:])
