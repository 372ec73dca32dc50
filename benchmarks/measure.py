"""One row of the tables: two or more sides, checked against each other and then timed in turns."""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from agreement import differences
from processes import Worker

THREADS = (1, 2)
# steps after the first whose losses show that both sides update their parameters alike
UPDATES = 2
WARM_UP, TRIAL_STEPS = 2, 2
# a side's turn lasts about so many seconds, in at least and at most so many steps
TURN_SECONDS, LEAST_STEPS, MOST_STEPS = 0.7, 3, 40
# glibc's counterparts of what configure_jax sets
MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1), "MALLOC_TOP_PAD_": str(2**28)}
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
DEFAULT_ALLOCATOR = {"FORGEFIELD_ALLOCATOR": "default"}


@dataclass(frozen=True)
class Job:
    """What a row compares: a case in a precision and a mode (``train`` or ``inference``), over so many rounds."""

    case: Path
    precision: str
    mode: str
    rounds: int

    def worker(self, engine: str, environment: Mapping[str, str] | None = None) -> Worker:
        """A side in a process of its own; all of a case and precision keep compiled functions in one place."""
        cache = {"JAX_COMPILATION_CACHE_DIR": str(self.case / f"compiled-{self.precision}")}
        return Worker(engine, self.case, self.precision, self.mode == "train", cache | dict(environment or {}))


def compare(job: Job) -> dict[str, Any]:
    """forgefield against mace-torch.

    Returns:
        Seconds per step, ratios, peak memory, seconds of compilation and of building batches, and differences.

    Raises:
        DisagreementError: they do not compute the same.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        files = {side: Path(folder) / f"{side}.npz" for side in ("jax", "torch")}
        with job.worker("jax") as cold:
            compilation = {"cold": cold.ask("first_step", file=str(files["jax"]))["seconds"]}
        jax, torch = stack.enter_context(job.worker("jax")), stack.enter_context(job.worker("torch"))
        torch.ask("first_step", file=str(files["torch"]))
        first = jax.ask("steps", count=1 + UPDATES)
        compilation["cached"] = first["seconds"][0]
        arrays = {side: dict(np.load(file)) for side, file in files.items()}
        if job.mode == "train":
            arrays["jax"]["update"] = np.array(first["losses"][1:])
            arrays["torch"]["update"] = np.array(torch.ask("steps", count=UPDATES)["losses"])
        found = differences(arrays["jax"], arrays["torch"], job.precision)
        threads = _best_threads(torch)
        sides = {"jax": jax, "torch": torch}
        return {
            "seconds": _in_turns(sides, job.rounds),
            "threads": threads,
            "compilation": compilation,
            "batches": {side: worker.ask("batches") for side, worker in sides.items()},
            "peak": {side: worker.peak for side, worker in sides.items()},
            "differences": found,
        }


def compare_allocators(job: Job) -> dict[str, Any]:
    """Each side with and without the setting of the memory allocator that forgefield makes at start."""
    environments = {
        "jax": ("jax", None),
        "jax, default allocator": ("jax", DEFAULT_ALLOCATOR),
        "torch": ("torch", None),
        "torch, same setting": ("torch", MALLOC),
        "torch, huge pages": ("torch", HUGE_PAGES),
    }
    with ExitStack() as stack:
        # compiles, so that no peak is that of a compilation
        with job.worker("jax") as first:
            first.ask("steps", count=1)
        sides = {name: stack.enter_context(job.worker(*arguments)) for name, arguments in environments.items()}
        threads = _best_threads(sides["torch"])
        for name, worker in sides.items():
            if name.startswith("torch"):
                worker.ask("threads", count=threads["best"])
        seconds = _in_turns(sides, job.rounds)
        return {"seconds": seconds, "threads": threads, "peak": {name: w.peak for name, w in sides.items()}}


def memory(job: Job, marks: tuple[int, ...]) -> dict[str, Any]:
    """Resident memory of a training, epochs and batches as users run it, once it has done so many steps.

    Returns:
        Steps and MiB before and at each mark (whole epochs), and seconds per step alone and within the training.
    """
    with job.worker("jax") as worker:
        alone = median(worker.ask("steps", count=WARM_UP + MOST_STEPS)["seconds"][WARM_UP:])
        steps, resident, seconds = [0], [worker.resident], []
        for mark in marks:
            done = worker.ask("train", count=mark - steps[-1])
            steps.append(steps[-1] + done["steps"])
            resident.append(worker.resident)
            seconds.append(done["seconds"] / done["steps"])
        return {"steps": steps, "resident": resident, "alone": alone, "training": seconds[-1]}


def _best_threads(torch: Worker) -> dict[str, Any]:
    """Median seconds of a step by number of threads, and the better number, which is set."""
    torch.ask("steps", count=WARM_UP)
    seconds: dict[int, list[float]] = {threads: [] for threads in THREADS}
    for threads in THREADS * 2:
        torch.ask("threads", count=threads)
        seconds[threads] += torch.ask("steps", count=TRIAL_STEPS)["seconds"]
    medians = {threads: median(times) for threads, times in seconds.items()}
    best = min(medians, key=medians.get)
    torch.ask("threads", count=best)
    return {"seconds": {str(threads): value for threads, value in medians.items()}, "best": best}


def _in_turns(sides: Mapping[str, Worker], rounds: int) -> dict[str, list[float]]:
    """Each side's median seconds per step by round; the sides take turns, so that noise of the machine hits all."""
    count = {}
    for name, worker in sides.items():
        usual = median(worker.ask("steps", count=WARM_UP)["seconds"])
        count[name] = int(min(max(TURN_SECONDS / usual, LEAST_STEPS), MOST_STEPS))
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, worker in sides.items():
            seconds[name].append(median(worker.ask("steps", count=count[name])["seconds"]))
    return seconds
