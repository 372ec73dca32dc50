"""How full dynamic batches are, how evenly processes share the work, and how long planning takes.

``python benchmarks/dynamic_batches.py`` prints the tables of docs/parallel.md. Files of ``../shared/data`` are read
where they are.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from ase.io import read

from forgefield.data.dynamic_batches import relative_work, within_limit
from forgefield.data.neighbors import neighbor_pairs
from forgefield.data.plans import Sizes
from forgefield.data.step_plans import DynamicSteps, FixedSteps, StepPlan
from forgefield.data.structures import Structure
from forgefield.trainers.fabric.repeated import RepeatedDynamicSteps

SHARED = Path(__file__).parents[2] / "shared" / "data"
FILES = {
    "clusters of solvents": ["molecules/solvent_xtb_train_200.xyz"],
    "all of them together": [
        "molecules/solvent_xtb_train_200.xyz",
        "molecules/3bpa_train_300K.xyz",
        "molecules/ethanol_ccsdt_reduced_100_kcal.xyz",
        "periodic/carbon_gap20_reduced_100.xyz",
        "periodic/uio66_mof_finetune_10.xyz",
        "periodic/high_level_water_10.xyz",
        "md22/md22_Ac-Ala3-NHMe_5frames.xyz",
        "md22/buckyball_catcher_148atoms.xyz",
    ],
}
CUTOFF, MARGIN = 5.0, 1.1
SHARED_BY = [(8, 2), (16, 2), (32, 4), (32, 8), (128, 8)]


def data_sets() -> Iterator[tuple[str, Sizes]]:
    random = np.random.default_rng(0)
    atoms = np.ceil(np.exp(random.normal(3.0, 0.7, 20000))).astype(int)
    yield "log-normal, sigma 0.7", Sizes(atoms, (atoms * random.uniform(5, 30, 20000)).astype(int), np.zeros(0))
    atoms = np.where(random.random(20000) < 0.8, random.integers(3, 20, 20000), random.integers(100, 250, 20000))
    yield (
        "four small ones on a large one",
        Sizes(atoms, (atoms * random.uniform(8, 30, 20000)).astype(int), np.zeros(0)),
    )
    for name, files in FILES.items():
        if all((SHARED / file).exists() for file in files):
            yield name, measured([frame for file in files for frame in read(SHARED / file, ":")])


def measured(frames: list) -> Sizes:
    structures = [Structure(a.numbers, a.positions, a.cell.array, a.pbc) for a in frames]
    pairs = [len(neighbor_pairs(structure, CUTOFF).receiver) for structure in structures]
    return Sizes(np.array([len(s) for s in structures]), np.array(pairs), np.zeros(0))


def next_fit(sizes: Sizes, limit: float) -> list[np.ndarray]:
    """Batches in random order, each filled until the next structure exceeds the limit."""
    work, batches, filled = relative_work(sizes), [], np.full(2, np.inf)
    for row in np.random.default_rng(0).permutation(len(work)):
        filled = filled + work[row]
        if filled.max() > limit:
            batches.append([])
            filled = work[row]
        batches[-1].append(row)
    return [np.array(batch) for batch in batches]


def fill(sizes: Sizes, batches: list[np.ndarray]) -> float:
    """Mean work of a batch in units of the largest, which memory must hold, without structures that go alone."""
    work = relative_work(sizes)
    loads = [work[batch].sum(axis=0).max() for batch in batches if len(batch) > 1]
    return float(np.mean(loads) / max(loads))


def same_number_by_next_fit(sizes: Sizes, count: int, batch: int) -> list[np.ndarray]:
    """Next-fit with the least limit with which there are no more than ``count`` batches."""
    margins = np.arange(1.0, 2.0, 0.01)
    tried = (next_fit(sizes, margin * batch) for margin in margins)
    return next(batches for batches in tried if len(batches) <= count)


def busy(sizes: Sizes, steps: list[list[np.ndarray]]) -> float:
    """Work of all processes in units of what they could do in the time of the slowest."""
    work = relative_work(sizes)
    loads = np.array([[work[part].sum(axis=0).max() for part in parts] for parts in steps])
    return float(loads.mean() / loads.max(axis=1).mean())


def packing(name: str, sizes: Sizes, batch: int) -> str:
    batches = [parts[0] for parts in DynamicSteps(sizes, batch, 1, MARGIN).steps(0).parts]
    plain = same_number_by_next_fit(sizes, len(batches), batch)
    return f"| {name} | {batch} | {len(batches)} | {fill(sizes, plain):.2f} | {fill(sizes, batches):.2f} |"


def sharing(name: str, sizes: Sizes, batch: int, parts: int) -> str:
    def steps(plan: StepPlan) -> list[list[np.ndarray]]:
        return list(plan.steps(0).parts)

    exact = DynamicSteps(sizes, batch, parts, MARGIN)
    work, dynamic = relative_work(sizes), steps(exact)
    evaluations = sum(len(within_limit(work, part, exact.limit)) for step in dynamic for part in step)
    filled = next_fit(sizes, exact.limit)
    plain = [filled[i : i + parts] for i in range(0, len(filled) - parts + 1, parts)]
    fixed = steps(FixedSteps(sizes, batch, parts, seed=0))
    repeated = steps(RepeatedDynamicSteps(sizes, batch, parts, MARGIN, seed=0))
    cells = [busy(sizes, each) for each in (fixed, plain, dynamic, repeated)]
    cells.append(evaluations / sum(len(part) > 0 for step in fixed for part in step))
    return f"| {name} | {batch} | {parts} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |"


def seconds(batch: int, parts: int) -> float:
    """The least of three to plan an epoch of 200,000 structures."""
    random = np.random.default_rng(0)
    atoms = np.ceil(np.exp(random.normal(3.0, 0.7, 200_000))).astype(int)
    plan = DynamicSteps(Sizes(atoms, atoms * 20, np.zeros(0)), batch, parts, MARGIN)
    times = []
    for epoch in range(3):
        start = time.perf_counter()
        plan.steps(epoch)
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    data = list(data_sets())
    print("| data | batch | batches | fill by next-fit | fill |\n|---|--:|--:|--:|--:|")
    for name, sizes in data:
        for batch in (8, 32):
            print(packing(name, sizes, batch), flush=True)
    print("\n| data | batch | processes | busy: fixed | next-fit | exact | repeat | evaluations |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, sizes in data:
        for batch, parts in SHARED_BY:
            print(sharing(name, sizes, batch, parts), flush=True)
    print()
    for batch in (8, 64, 512):
        print(f"200,000 structures, batch {batch}, 8 processes: {seconds(batch, 8):.2f} s")
