"""Random places at which trainings of one method are killed, and whether they then end as if they had not been."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from trainings import Ended, Trainings, results
from victim import Fault, members

from forgefield.trainers.checkpoints import saved_checkpoints

# seconds: longer than a step or a file operation takes here
LONGEST_DELAY = 0.02
# in which what was killed is gone, where other work makes the machine slow
GRACE = 5.0
CONTINUES = ("continues after", "complete: ")


@dataclass(frozen=True)
class Place:
    """A fault, and what it is called in the table and in the log."""

    fault: Fault
    kind: str
    words: str


@dataclass
class Outcome:
    """What became of the trainings of one method.

    Attributes:
        kills: how many there were, by kind.
        trainings: that were killed, once or more, and resumed.
        same: those of them with which nothing was wrong.
        problems: what was wrong with the others.
    """

    kills: dict[str, int] = field(default_factory=dict)
    trainings: int = 0
    same: int = 0
    problems: list[str] = field(default_factory=list)


def _names(rank: int, line: str) -> bool:
    return line.startswith(f"error: rank {rank} of the training ") and "run again" in line


class Trials:
    """Trainings of one method, which are killed and resumed and compared with an unbroken one."""

    def __init__(self, trainings: Trainings, seed: int) -> None:
        self.trainings, self.outcome = trainings, Outcome()
        # the same method meets the same places whichever others are tried
        self._rng = np.random.default_rng([seed, *trainings.method.encode()])
        operations = trainings.folder / f"{trainings.base.name}.json"
        whole = trainings.run("whole", operations=operations)
        assert whole.code == 0, whole.stderr
        self._expected = results(trainings.base / "whole")
        self._operations = json.loads(operations.read_text())
        self._steps = int(self._expected["history"][-1]["step"])

    def kill_and_resume(self, times: int) -> None:
        """Kill a new training at so many places in turn, and let it end."""
        name, first = f"killed-{self.outcome.trainings}", 1
        places, problems = [], []
        for i in range(times):
            # earlier ones leave room for later ones
            place = self._draw(first, last=max(first, self._steps * (i + 1) // times))
            killed = self.trainings.run(name, place.fault)
            print(f"{self.trainings.method}: {place.words}: ended after {killed.seconds:.1f} s", flush=True)
            first = place.fault.step
            if killed.code == 0:  # it was done before
                continue
            places.append(place)
            self.outcome.kills[place.kind] = self.outcome.kills.get(place.kind, 0) + 1
            problems += self._wrong_after_kill(name, place.fault, killed)
        problems += self._wrong_at_the_end(name)
        self.outcome.trainings += 1
        self.outcome.same += not problems
        where = "; then ".join(place.words for place in places)
        for problem in problems:
            self.outcome.problems.append(f"{self.trainings.method}, killed {where}: {problem}")
            print(self.outcome.problems[-1], flush=True)

    def _draw(self, first: int, last: int) -> Place:
        """After one of these steps, half of the times while files are written."""
        rng, processes = self._rng, self.trainings.processes
        everyone = processes == 1 or bool(rng.random() < 0.5)
        rank, operation, what = int(rng.integers(processes)), 0, ""
        later = [(step, what) for step, what in self._operations if first <= step <= last]
        if later and rng.random() < 0.5:
            index = int(rng.integers(len(later)))
            step, what = later[index]
            operation = 1 + sum(other == step for other, _ in later[:index])
            rank = 0  # which writes
        else:
            step = int(rng.integers(first, last + 1))
        delay = float(rng.uniform(0, LONGEST_DELAY)) if rng.random() < 0.5 else 0.0
        whom = "all processes" if everyone else f"process {rank}"
        where = f"after step {step}" + (f", before operation {operation}, {what}" if what else "")
        when = f" and {1e3 * delay:.1f} ms" if delay else ""
        kind = f"{'all' if everyone else 'one'}, {'writing' if what else 'step'}"
        return Place(Fault(rank, everyone, step, operation, delay), kind, f"{whom} {where}{when}")

    def _wrong_after_kill(self, name: str, fault: Fault, killed: Ended) -> list[str]:
        problems = []
        if left := _left(self.trainings.base / name):
            problems.append(f"processes {sorted(left)} are left")
        if fault.everyone:
            if killed.code != -9:
                problems.append(f"it ended with code {killed.code}, not -9")
        elif killed.code != 3 or len(killed.errors) != 1 or not _names(fault.rank, killed.errors[0]):
            problems.append(f"it ended with code {killed.code} and {killed.errors}, not with one line")
        return problems

    def _wrong_at_the_end(self, name: str) -> list[str]:
        output = self.trainings.base / name
        saved = saved_checkpoints(output / "checkpoints")
        resumed = self.trainings.run(name)
        if resumed.code:
            return [f"it cannot be resumed: {resumed.stderr}"]
        problems = []
        if saved and not any(words in resumed.stderr for words in CONTINUES):
            problems.append(f"it began anew, although there was {saved[0].name}")
        if left := [path.name for path in output.rglob(".*") if path.name != ".lock"]:
            problems.append(f"{', '.join(left)} are left")
        return problems + _differences(results(output), self._expected)


def _left(folder: Path) -> dict[int, int | None]:
    """Processes of a run that do not end; that what started them has ended does not mean that they are gone."""
    deadline = time.monotonic() + GRACE
    while (left := members(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    different = [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
    return [f"{key} differs from the unbroken training's" for key in different]
