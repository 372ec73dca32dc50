import jax.numpy as jnp
import numpy as np
import optax
import pytest

from forgefield.trainers.optimizers import current_lr, optimizer, schedule, update_average


def test_warmup_rises_and_cosine_ends_at_the_final_fraction():
    lr = schedule(0.1, 110, "cosine", warmup_steps=10, final_fraction=0.05)
    values = [float(lr(step)) for step in range(110)]
    assert values[0] == pytest.approx(0.1 / 11)
    assert values[10] == pytest.approx(0.1)
    assert values[109] == pytest.approx(0.005)
    assert all(np.diff(values[:11]) > 0)
    assert all(np.diff(values[10:]) < 0)


def test_exponential_falls_by_equal_factors():
    lr = schedule(0.1, 101, "exponential", final_fraction=0.01)
    values = np.array([float(lr(step)) for step in range(101)])
    np.testing.assert_allclose(values[1:] / values[:-1], 0.01 ** (1 / 100), rtol=1e-4)
    assert values[-1] == pytest.approx(0.001)


def test_constant():
    assert float(schedule(0.1, 100)(57)) == pytest.approx(0.1)


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_is_optax_adam_with_the_learning_rate_in_its_state(kind):
    lr = schedule(0.1, 10, "cosine")
    own = optimizer(kind, lr, weight_decay=0.2)
    reference = optax.adam(lr) if kind == "adam" else optax.adamw(lr, weight_decay=0.2)
    params = {"w": jnp.array([1.0, -2.0])}
    state, reference_state = own.init(params), reference.init(params)
    for step in range(3):
        gradient = {"w": params["w"] * (step + 1)}
        updates, state = own.update(gradient, state, params)
        wanted, reference_state = reference.update(gradient, reference_state, params)
        np.testing.assert_allclose(updates["w"], wanted["w"], rtol=1e-6)
        assert current_lr(state) == pytest.approx(float(lr(step)))
        params = optax.apply_updates(params, updates)


def test_clips_the_norm_of_all_gradients_together():
    params = {"a": jnp.zeros(2), "b": jnp.zeros(2)}
    gradient = {"a": jnp.array([30.0, 0.0]), "b": jnp.array([0.0, 40.0])}
    clipped = optimizer("adam", 0.1, clip_norm=5.0)
    _, state = clipped.update(gradient, clipped.init(params), params)
    momentum = optax.tree_utils.tree_get(state, "mu")
    np.testing.assert_allclose(momentum["a"], [0.1 * 3.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(momentum["b"], [0.0, 0.1 * 4.0], rtol=1e-6)


def test_an_optimizer_that_hides_its_learning_rate():
    assert current_lr(optax.sgd(0.1).init({"w": jnp.zeros(1)})) is None


def test_average_starts_fast_and_then_keeps_its_decay():
    average = update_average(jnp.array(0.0), jnp.array(1.0), 0.99, jnp.array(1))
    assert float(average) == pytest.approx(1 - 2 / 11)
    average = update_average(jnp.array(0.0), jnp.array(1.0), 0.99, jnp.array(10_000))
    assert float(average) == pytest.approx(0.01, rel=1e-4)
