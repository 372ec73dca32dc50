"""The plan of batches that a run's settings ask for."""

from collections.abc import Callable
from functools import partial

from forgefield.config.training import TrainingConfig
from forgefield.data.batching import round_up
from forgefield.data.plans import Sizes
from forgefield.data.step_plans import DynamicSteps, FixedSteps, StepPlan
from forgefield.trainers.fabric.repeated import RepeatedDynamicSteps, RepeatedFixedSteps


def training_plan(training: TrainingConfig, parts: int) -> Callable[[Sizes], StepPlan]:
    """Makes the plan of training in so many processes."""
    settings = {"parts": parts, "seed": training.seed, "drop_last": training.drop_last}
    # the same number for each process, rounded up; where work is shared, nothing is to be gained by it
    even = round_up(training.batch, parts)
    if training.batching == "fixed":
        return partial(FixedSteps if training.balance == "exact" else RepeatedFixedSteps, batch=even, **settings)
    settings["margin"] = training.dynamic_margin
    if training.balance == "exact":
        return partial(DynamicSteps, batch=training.batch, **settings)
    return partial(RepeatedDynamicSteps, batch=even, **settings)


def evaluation_plan(training: TrainingConfig, parts: int) -> Callable[[Sizes], StepPlan]:
    """Makes the plan of validation in so many processes: each structure once."""
    if training.batching == "fixed":
        return partial(FixedSteps, batch=round_up(training.eval_batch, parts), parts=parts)
    return partial(DynamicSteps, batch=training.eval_batch, parts=parts, margin=training.dynamic_margin)
