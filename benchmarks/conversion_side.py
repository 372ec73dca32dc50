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
    start, own_start = time.perf_counter(), time.process_time()
    if side == "ase":
        frames = sum(1 for _ in ase.io.iread(path, ":", "extxyz"))
    else:
        with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
            report = convert_dataset("benchmark", DatasetConfig(source=path), Path(folder) / "out", jobs=int(jobs))
        frames = report["frames"]["usable"]
    seconds, cpu = time.perf_counter() - start, time.process_time() - own_start
    own, child = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # the kernel knows only the largest of the children; beside those that read there are small ones
    peak = own.ru_maxrss + (int(jobs) * child.ru_maxrss if int(jobs) > 1 else 0)
    print(json.dumps({"frames": frames, "seconds": seconds, "cpu_seconds": cpu, "peak_MiB": peak / 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
