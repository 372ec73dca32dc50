from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from labelled_data import SHIFTS, labelled_structures, run_config, with_giant

from forgefield.data.reader import StructureList
from forgefield.data.step_plans import FixedSteps
from forgefield.trainers.fabric.batches import evaluation_plan, training_plan
from forgefield.trainers.fabric.graphs import DirectedNeighbors
from forgefield.trainers.fabric.loader import StepLoader


@dataclass
class Process:
    """One of several, on which the data is the same."""

    index: int
    count: int

    def broadcast(self, item):
        return item or loader(self.data, self.plan).sizes


def loader(data, plan, index=0, count=1):
    process = Process(index, count)
    process.data, process.plan = data, plan
    return StepLoader(StructureList(data), DirectedNeighbors(3.0, (1, 8), SHIFTS), plan, process, dtype=np.float64)


@pytest.mark.parametrize("batching", ["fixed", "dynamic"])
@pytest.mark.parametrize("plan", [training_plan, evaluation_plan])
def test_processes_compute_each_structure_once(batching, plan):
    data = with_giant(labelled_structures(11))
    training = run_config(batching=batching, batch=4, eval_batch=4).training
    of_steps = []
    atoms = []
    for index in range(3):
        for loaded in loader(data, plan(training, 3), index, 3).epoch(1):
            assert sum(len(part.graph.n_atoms) for part in loaded.parts) == loaded.part_lengths[index]
            atoms += [n for part in loaded.parts for n in part.graph.n_atoms.tolist()]
            of_steps.append(loaded.rows.tolist())
    assert sorted(atoms) == sorted(map(len, data))
    third = len(of_steps) // 3
    assert of_steps[:third] == of_steps[third : 2 * third] == of_steps[2 * third :]


def test_what_exceeds_the_limit_is_computed_in_several_parts():
    class Limited(FixedSteps):
        limit = 2.0

    data = with_giant(labelled_structures(11))
    (loaded,) = loader(data, partial(Limited, batch=11, parts=1)).epoch(0)
    sizes = [part.graph.n_atoms.tolist() for part in loaded.parts]
    assert [64] in sizes
    average = sum(map(len, data)) / 11
    assert all(sum(part) <= 2 * average for part in sizes if part != [64])
    assert sum(map(len, sizes)) == loaded.part_lengths[0] == 11
    (loaded,) = loader(data, partial(FixedSteps, batch=11, parts=1)).epoch(0)
    assert len(loaded.parts) == 1


@pytest.mark.parametrize(
    ("settings", "batch"),
    [({"batching": "fixed"}, 9), ({"balance": "exact"}, 8), ({"balance": "repeat"}, 9)],
)
def test_a_step_is_meant_to_have(settings, batch):
    config = run_config(batch=8, **settings).model_copy(update={"devices": 3})
    plan = training_plan(config.training, 3)
    assert loader(labelled_structures(4), plan).batch == config.step_batch == batch
