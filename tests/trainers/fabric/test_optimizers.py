import jax
import numpy as np
import optax
import pytest
import torch

from forgefield.config.training import Schedule, TrainingConfig
from forgefield.trainers import optimizers as of_jax
from forgefield.trainers.fabric.optimizers import clip_gradients, optimizer, schedule, update_average


@pytest.mark.parametrize("kind", ["constant", "cosine", "exponential"])
@pytest.mark.parametrize("warmup", [0, 4])
def test_learning_rates_are_those_of_jax(kind, warmup):
    settings = Schedule(kind=kind, warmup_steps=warmup, final_fraction=0.05)
    ours = schedule(0.3, 20, settings)
    theirs = jax.jit(of_jax.schedule(0.3, 20, **settings.model_dump()))
    assert [ours(step) for step in range(23)] == pytest.approx([float(theirs(step)) for step in range(23)], rel=1e-13)


@pytest.mark.parametrize("clip_norm", [None, 1.0, 100.0])
@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_steps_and_averages_are_those_of_jax(kind, clip_norm):
    decay = 0.1 if kind == "adamw" else 0.0
    training = TrainingConfig(optimizer=kind, weight_decay=decay, lr=0.01, clip_norm=clip_norm)
    start = {"w": np.array([[1.0, -2.0], [0.5, 3.0]]), "b": np.array([0.1])}
    ours = {k: torch.nn.Parameter(torch.tensor(v)) for k, v in start.items()}
    average = {k: p.detach().clone() for k, p in ours.items()}
    made = optimizer(training, ours.values())
    transform = of_jax.optimizer(kind, 0.01, weight_decay=decay, clip_norm=clip_norm)
    theirs, their_average, state = start, start, transform.init(start)
    rng = np.random.default_rng(0)
    for step in range(1, 8):
        gradients = {k: 3.0 * rng.normal(size=v.shape) for k, v in start.items()}
        for name, parameter in ours.items():
            parameter.grad = torch.tensor(gradients[name])
        assert float(clip_gradients(ours.values(), clip_norm)) == pytest.approx(float(optax.tree.norm(gradients)))
        made.step()
        update_average(average, ours, 0.5, step)
        updates, state = transform.update(gradients, state, theirs)
        theirs = optax.apply_updates(theirs, updates)
        their_average = of_jax.update_average(their_average, theirs, 0.5, step)
    for name in start:
        np.testing.assert_allclose(ours[name].detach(), theirs[name], rtol=1e-12)
        np.testing.assert_allclose(average[name], their_average[name], rtol=1e-12)
