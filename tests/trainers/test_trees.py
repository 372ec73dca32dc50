import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.trainers.optimizers import optimizer, schedule
from forgefield.trainers.trees import load_arrays, named_arrays, save_arrays


def tree(size=3):
    params = {"w": np.arange(size, dtype=np.float32), "scalar": np.float32(1.5)}
    state = optimizer("adamw", schedule(0.1, 10), clip_norm=1.0).init(jax.tree.map(jnp.asarray, params))
    return {"params": params, "opt": state, "average": None}


def test_comes_back_bit_for_bit(tmp_path):
    save_arrays(tmp_path / "tree", tree())
    loaded = load_arrays(tmp_path / "tree", tree())
    assert jax.tree.structure(loaded) == jax.tree.structure(tree())
    for got, wanted in zip(jax.tree.leaves(loaded), jax.tree.leaves(tree()), strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == np.shape(wanted)
        assert np.array_equal(got, wanted)


def test_names_are_places_in_the_tree():
    assert {"['params']['w']", "['params']['scalar']"} < set(named_arrays(tree()))


def test_another_model_is_refused(tmp_path):
    save_arrays(tmp_path / "tree", tree(size=4))
    with pytest.raises(UserError, match=r"\['w'\] does not match this model or optimizer"):
        load_arrays(tmp_path / "tree", tree())
