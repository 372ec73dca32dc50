"""Which frames of a program's output did not converge, where the output says so.

The programs print what happened to each self-consistent calculation in the order of the frames.
"""

import re
from collections.abc import Iterator
from pathlib import Path


def unconverged_frames(path: Path, form: str) -> dict[int, str]:
    """Number of each frame whose calculation did not converge -> what the file says of it."""
    if form not in _READERS:
        return {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        return {number: reason for number, reason in enumerate(_READERS[form](lines)) if reason}


def _outcar(lines: Iterator[str]) -> Iterator[str | None]:
    """VASP 5 says that EDIFF is reached also after the last step allowed, so the steps are counted."""
    limit, step, steps, failed = None, 0, 0, False
    for line in lines:
        if limit is None and "NELM" in line and (found := re.match(r"\s*NELM\s*=\s*(\d+);", line)):
            limit = int(found[1])
        elif "Iteration" in line and (found := re.search(r"Iteration\s+(\d+)\(\s*(\d+)\)", line)):
            if int(found[1]) != step and step:
                yield _vasp(steps, limit, failed)
                failed = False
            step, steps = int(found[1]), int(found[2])
        elif "EDIFF was not reached" in line:
            failed = True
    if step:
        yield _vasp(steps, limit, failed)


def _vasprun(lines: Iterator[str]) -> Iterator[str | None]:
    limit, steps = None, 0
    for line in lines:
        if "NELM" in line and (found := re.search(r'name="NELM">\s*(\d+)', line)):
            limit = int(found[1])
        steps += line.count("<scstep>")
        if "</calculation>" in line:
            yield _vasp(steps, limit, False)
            steps = 0


def _vasp(steps: int, limit: int | None, failed: bool) -> str | None:
    reached = limit is not None and steps >= limit
    return f"not converged: {steps} electronic steps, NELM is {limit}" if reached or failed else None


def _orca(lines: Iterator[str]) -> Iterator[str | None]:
    """A frame ends where ASE ends it."""
    reason = None
    for line in lines:
        if found := re.search(r"SCF NOT CONVERGED AFTER\s+\d+ CYCLES|[Ww]avefunction (IS )?(NOT YET|not fully)", line):
            reason = f"not converged: {found[0].strip()}"
        elif "ORCA TERMINATED NORMALLY" in line or "ORCA GEOMETRY RELAXATION STEP" in line:
            yield reason
            reason = None


def _espresso(lines: Iterator[str]) -> Iterator[str | None]:
    for line in lines:
        if "convergence has been achieved in" in line:
            yield None
        elif found := re.search(r"convergence NOT achieved after\s+\d+ iterations", line):
            yield f"not converged: {found[0]}"


_READERS = {"vasp-out": _outcar, "vasp-xml": _vasprun, "orca-output": _orca, "espresso-out": _espresso}
