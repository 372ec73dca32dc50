"""One side of a comparison in a process of its own: reads commands from standard input, answers on standard output."""

import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, TextIO

import numpy as np
from cases import read_case

BATCH_REPEATS = 7


def main() -> None:
    job = json.loads(sys.argv[1])
    # whatever libraries print goes to standard error, answers to the parent alone
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = read_case(Path(job["case"]))
    engine = _engine(job["engine"])(case, job["precision"], job["train"])
    _answer(answers, {})
    for line in sys.stdin:
        command = json.loads(line)
        _answer(answers, COMMANDS[command.pop("do")](engine, **command))


def _engine(name: str) -> type:
    if name == "jax":
        from engines.jax_engine import JaxEngine

        return JaxEngine
    from engines.torch_engine import TorchEngine

    return TorchEngine


def _steps(engine: Any, count: int) -> dict[str, Any]:
    seconds, losses = [], []
    for _ in range(count):
        start = time.perf_counter()
        losses.append(engine.step())
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "losses": losses}


def _first_step(engine: Any, file: str) -> dict[str, Any]:
    seconds, arrays = engine.first_step()
    np.savez(file, **arrays)
    return {"seconds": seconds}


def _batches(engine: Any) -> dict[str, Any]:
    """Medians of the seconds it takes to build a batch."""
    times = [engine.batch_seconds() for _ in range(BATCH_REPEATS)]
    return {name: median(t[name] for t in times) for name in times[0]}


def _threads(engine: Any, count: int) -> dict[str, Any]:
    engine.set_threads(count)
    return {}


def _train(engine: Any, count: int) -> dict[str, Any]:
    start = time.perf_counter()
    done = engine.train(count)
    return {"steps": done, "seconds": time.perf_counter() - start}


COMMANDS = {"steps": _steps, "first_step": _first_step, "batches": _batches, "threads": _threads, "train": _train}


def _answer(answers: TextIO, content: dict[str, Any]) -> None:
    print(json.dumps(content | _memory()), file=answers, flush=True)


def _memory() -> dict[str, int]:
    """Resident memory now and at its peak, MiB; not ``getrusage``, whose peak includes the parent's before exec."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {"rss": int(lines["VmRSS"].split()[0]) // 1024, "peak": int(lines["VmHWM"].split()[0]) // 1024}


if __name__ == "__main__":
    main()
