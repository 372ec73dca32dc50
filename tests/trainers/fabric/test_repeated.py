from itertools import chain

import numpy as np
import pytest
from torch.utils.data import DistributedSampler

from forgefield.data.dynamic_batches import relative_work
from forgefield.data.plans import Sizes
from forgefield.errors import UserError
from forgefield.trainers.fabric.repeated import RepeatedDynamicSteps, RepeatedFixedSteps


def sizes(n, seed=0):
    random = np.random.default_rng(seed)
    atoms = np.ceil(np.exp(random.normal(3.0, 0.7, n))).astype(int)
    return Sizes(atoms, (atoms * random.uniform(5, 30, n)).astype(int), np.zeros(0))


def of_parts(plan, epoch=0):
    return [[part.tolist() for part in parts] for parts in plan.steps(epoch).parts]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [8, 23, 25])
def test_fixed_steps_are_those_of_the_distributed_sampler(n, drop_last):
    steps = of_parts(RepeatedFixedSteps(sizes(n), batch=6, parts=3, seed=7, drop_last=drop_last), epoch=2)
    for part in range(3):
        sampler = DistributedSampler(range(n), 3, part, seed=7, drop_last=drop_last)
        sampler.set_epoch(2)
        expected = list(sampler)
        if drop_last:
            expected = expected[: len(expected) // 2 * 2]
        assert list(chain(*(step[part] for step in steps))) == expected
        assert {len(step[part]) for step in steps[:-1]} <= {2}


@pytest.mark.parametrize(("drop_last", "repeats"), [(False, True), (True, False)])
def test_dynamic_steps_repeat_or_discard_final_batches(drop_last, repeats):
    plan = RepeatedDynamicSteps(sizes(100), batch=12, parts=3, margin=1.1, seed=1, drop_last=drop_last)
    steps = of_parts(plan)
    batches = [tuple(part) for step in steps for part in step]
    assert len(steps) == (9 if repeats else 8)  # of 25 batches
    seen = sorted(chain(*set(batches)))
    assert len(seen) == len(set(seen))
    if repeats:
        assert seen == list(range(100))
        assert steps[-1][1:] == steps[-2][1:]  # the first process has one batch more
        assert len(set(batches)) == 25
    else:
        assert len(set(batches)) == len(batches) == 24


def test_processes_of_a_step_have_similar_work():
    of = sizes(1000)
    of.atoms[5], of.atoms[6] = 3000, 3000
    work = relative_work(of)
    steps = RepeatedDynamicSteps(of, batch=8, parts=2, margin=1.1, seed=1).steps(0).parts
    peaks = np.array([[work[part].sum(axis=0).max() for part in parts] for parts in steps])
    assert peaks.mean() / peaks.max(axis=1).mean() > 0.97


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_structures_than_processes(n):
    for plan in (
        RepeatedDynamicSteps(sizes(n), batch=3, parts=3, margin=1.1, seed=1),
        RepeatedFixedSteps(sizes(n), batch=3, parts=3, seed=1),
    ):
        ((first, second, third),) = of_parts(plan)
        assert set(first + second + third) == set(range(n))
        assert all((first, second, third))
    for plan in (RepeatedFixedSteps, RepeatedDynamicSteps):
        settings = {"margin": 1.1} if plan is RepeatedDynamicSteps else {}
        with pytest.raises(UserError, match="drop_last leaves nothing"):
            plan(sizes(n), batch=3, parts=3, seed=1, drop_last=True, **settings)
