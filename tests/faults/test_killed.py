"""Trainings that are killed twice, at random, and resumed end with the bits of unbroken ones."""

import os
import time

import pytest
from trainings import METHODS, Trainings
from trials import Trials

SEED = int(os.environ.get("FORGEFIELD_FAULT_SEED", time.time_ns() % 10**6))


@pytest.mark.parametrize("method", METHODS)
def test_a_training_that_was_killed_ends_as_if_it_had_not_been(folder, method):
    trials = Trials(Trainings(folder, method), SEED)
    trials.kill_and_resume(times=2)
    assert trials.outcome.problems == [], f"FORGEFIELD_FAULT_SEED={SEED} repeats it"
