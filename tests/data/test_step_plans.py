from itertools import chain

import numpy as np
import pytest

from forgefield.data.plans import Sizes, epoch_order
from forgefield.data.step_plans import DynamicSteps, FixedSteps
from forgefield.errors import UserError


def sizes(n, seed=0):
    random = np.random.default_rng(seed)
    atoms = np.ceil(np.exp(random.normal(3.0, 0.7, n))).astype(int)
    return Sizes(atoms, (atoms * random.uniform(5, 30, n)).astype(int), np.zeros(0))


def of_parts(plan, epoch=0):
    return [[part.tolist() for part in parts] for parts in plan.steps(epoch).parts]


def test_fixed_steps_are_shared_in_order():
    plan = FixedSteps(sizes(11), batch=6, parts=3, seed=4)
    order = epoch_order(11, 4, 2).tolist()
    assert of_parts(plan, 2) == [
        [order[0:2], order[2:4], order[4:6]],
        [order[6:8], order[8:10], order[10:11]],
    ]
    assert of_parts(FixedSteps(sizes(7), batch=6, parts=3, seed=4))[1][1:] == [[], []]
    assert [len(step) for step in of_parts(FixedSteps(sizes(11), 6, 3, seed=4, drop_last=True))] == [3]


def test_fixed_steps_without_a_seed_keep_similar_structures_together():
    of = sizes(20)
    rows = FixedSteps(of, batch=4, parts=2).steps(0).rows
    assert (np.diff(of.pairs[rows]) >= 0).all()


@pytest.mark.parametrize(("n", "batch"), [(50, 8), (3, 8), (50, 1)])
def test_the_number_of_parts_does_not_change_dynamic_steps(n, batch):
    plans = [DynamicSteps(sizes(n), batch, parts, margin=1.1, seed=3) for parts in (1, 2, 3, 8)]
    for epoch in range(2):
        alone, *others = ([sorted(chain(*parts)) for parts in of_parts(plan, epoch)] for plan in plans)
        assert len(alone) == -(-n // batch)
        assert sorted(chain(*alone)) == list(range(n))
        assert all(other == alone for other in others)


def test_the_limit_is_that_of_a_part():
    assert DynamicSteps(sizes(9), batch=8, parts=3, margin=1.5).limit == 1.5 * 3


def test_dynamic_steps_leave_out_what_fixed_ones_do():
    plans = [FixedSteps(sizes(50), 8, 2, seed=3, drop_last=True), DynamicSteps(sizes(50), 8, 2, 1.1, 3, drop_last=True)]
    one, other = (plan.steps(1) for plan in plans)
    assert len(one.ends) == len(other.ends) == 6
    assert sorted(one.rows) == sorted(other.rows)


@pytest.mark.parametrize("plan", [FixedSteps, DynamicSteps])
def test_nothing_is_left(plan):
    settings = {"margin": 1.1} if plan is DynamicSteps else {}
    with pytest.raises(
        UserError,
        match="drop_last leaves nothing of 7 training structures, which do not fill one batch of 8;",
    ):
        plan(sizes(7), batch=8, parts=2, drop_last=True, **settings)
