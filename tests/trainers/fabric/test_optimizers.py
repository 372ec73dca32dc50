import jax
import numpy as np
import optax
import pytest
import torch

from forgefield.config.training import Schedule, TrainingConfig
from forgefield.trainers import optimizers as of_jax
from forgefield.trainers.fabric.optimizers import clip_gradients, optimizers, schedule, update_average


@pytest.mark.parametrize(
    ("kind", "constant"), [("constant", 0), ("cosine", 0), ("cosine", 6), ("exponential", 0), ("exponential", 6)]
)
@pytest.mark.parametrize("warmup", [0, 4])
def test_learning_rates_are_those_of_jax(kind, warmup, constant):
    settings = Schedule(kind=kind, warmup_steps=warmup, constant_steps=constant, final_fraction=0.05)
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
    (made,) = optimizers(training, ours.values())
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


def test_muon_takes_matrices_and_adamw_the_rest():
    shapes = {"matrix": (4, 3), "embedding": (5, 2), "vector": (3,), "tensor": (2, 2, 2)}
    params = {name: torch.nn.Parameter(torch.ones(shape)) for name, shape in shapes.items()}
    training = TrainingConfig(optimizer="muon", weight_decay=0.1, lr=0.02)
    muon, adamw = optimizers(training, params.values(), [params["embedding"]])
    assert [type(muon), type(adamw)] == [torch.optim.Muon, torch.optim.AdamW]
    assert muon.param_groups[0]["params"] == [params["matrix"]]
    assert adamw.param_groups[0]["params"] == [params[name] for name in ("embedding", "vector", "tensor")]
    assert all((o.param_groups[0]["lr"], o.param_groups[0]["weight_decay"]) == (0.02, 0.1) for o in (muon, adamw))
    # a step is about as large as AdamW's: about 0.2 times the learning rate in the root mean square
    params["matrix"].grad = torch.eye(4, 3)
    before = params["matrix"].detach() * (1 - 0.1 * 0.02)
    muon.step()
    size = (params["matrix"].detach() - before).square().mean().sqrt() / 0.02
    assert 0.1 < size < 0.3


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_what_must_not_decay_does_not(optimizer):
    params = {name: torch.nn.Parameter(torch.ones(2)) for name in ("weight", "bias")}
    training = TrainingConfig(optimizer=optimizer, weight_decay=0.5, lr=0.1)
    (made,) = optimizers(training, params.values(), not_decayed=[params["bias"]])
    for parameter in params.values():
        parameter.grad = torch.zeros(2)
    made.step()
    assert params["weight"].tolist() == pytest.approx([0.95, 0.95])
    assert params["bias"].tolist() == [1, 1]


def test_muon_alone_and_adamw_alone():
    training = TrainingConfig(optimizer="muon")
    for shape, kind in (((2, 2), torch.optim.Muon), ((2,), torch.optim.AdamW)):
        assert [type(o) for o in optimizers(training, [torch.nn.Parameter(torch.ones(shape))])] == [kind]
