"""Kill trainings of every method at random places, resume them, and compare their ends with those of unbroken ones.

``python tests/faults/matrix.py [POINTS] [--seed SEED] [--method METHOD] [--update-docs]``; `make faults` does it with
20 points per method and writes the table of docs/reliability.md.
"""

import argparse
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from trainings import METHODS, Trainings, make_inputs
from trials import Outcome, Trials

from forgefield.files import atomic_file

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- written by make faults -->\n", "<!-- end -->\n"
HEAD = "| method | one process, at a step | one, writing | all, at a step | all, writing | ended with the same bits |"
KINDS = ("one, step", "one, writing", "all, step", "all, writing")
# every training is killed so many times before it may end
KILLS = 2


def try_method(folder: Path, method: str, points: int, seed: int) -> Outcome:
    trials = Trials(Trainings(folder, method), seed)
    # a fault may come too late; more than this, and it does not come at all
    while (left := points - sum(trials.outcome.kills.values())) > 0 and trials.outcome.trainings < points:
        trials.kill_and_resume(min(KILLS, left))
    if left > 0:
        trials.outcome.problems.append(
            f"{method}: in {points} trainings only {points - left} of {points} kills happened"
        )
    return trials.outcome


def table(outcomes: dict[str, Outcome]) -> str:
    lines = [HEAD, "|---|" + "---:|" * 5]
    for method, outcome in outcomes.items():
        kills = [str(outcome.kills.get(kind, "–")) for kind in KINDS]
        same = f"{outcome.same} of {outcome.trainings}"
        lines.append(f"| {' | '.join([method, *kills, same])} |")
    return "\n".join(lines)


def update_page(text: str) -> None:
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    with atomic_file(PAGE) as temporary:
        temporary.write_text(before + BEGIN + text + END + rest.split(END, 1)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("points", type=int, nargs="?", default=20, help="how often trainings of each method are killed")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--update-docs", action="store_true", help=f"write the table into {PAGE.name}")
    words = parser.parse_args()
    # the functions of these small models compile in less than JAX keeps by default
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    start, outcomes = time.monotonic(), {}
    with tempfile.TemporaryDirectory() as folder:
        make_inputs(Path(folder) / "inputs")
        for method in words.method or METHODS:
            outcomes[method] = try_method(Path(folder), method, words.points, words.seed)
            minutes = (time.monotonic() - start) / 60
            about = f"{datetime.now(UTC):%Y-%m-%d}, seed {words.seed}, {minutes:.0f} minutes on {os.cpu_count()} cores"
            text = f"{about}:\n\n{table(outcomes)}\n"
            if words.update_docs:  # a run that is interrupted shows what it has tried
                update_page(text)
    print(text)
    if problems := [problem for outcome in outcomes.values() for problem in outcome.problems]:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
