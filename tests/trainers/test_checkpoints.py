import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.trainers.checkpoints import (
    load_newest,
    remove_leftovers,
    save_checkpoint,
    saved_checkpoints,
    set_aside_if_changed,
)
from forgefield.trainers.optimizers import optimizer, schedule

PRINT = {"training.lr": 0.1, "data/train.h5": "f" * 64}


def arrays(scale=1.0):
    params = {"w": np.arange(3.0, dtype=np.float32) * scale, "scalar": np.float32(scale)}
    state = optimizer("adamw", schedule(0.1, 10), clip_norm=1.0).init(jax.tree.map(jnp.asarray, params))
    return {"params": params, "opt": state, "average": None}


def content(epoch):
    return {"epoch": epoch, "fingerprint": PRINT}


def save(directory, *epochs):
    return [save_checkpoint(directory, e, arrays(e), content(e)) for e in epochs]


def test_comes_back_bit_for_bit(tmp_path):
    save(tmp_path, 1)
    loaded = load_newest(tmp_path, arrays(), PRINT)
    assert jax.tree.structure(loaded.arrays) == jax.tree.structure(arrays())
    for got, wanted in zip(jax.tree.leaves(loaded.arrays), jax.tree.leaves(arrays(1)), strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == np.shape(wanted)
        assert np.array_equal(got, wanted)
    assert loaded.content["epoch"] == 1


def test_the_newest_two_are_kept(tmp_path):
    save(tmp_path, 9, 10, 11)
    assert [p.name for p in saved_checkpoints(tmp_path)] == ["epoch_000011", "epoch_000010"]


def test_nothing_saved(tmp_path):
    assert load_newest(tmp_path / "absent", arrays(), PRINT) is None
    assert set_aside_if_changed(tmp_path / "absent", tmp_path / "aside", PRINT) is None


@pytest.mark.parametrize("name", ["arrays.safetensors", "content.json"])
def test_a_damaged_one_is_passed_over_with_a_warning(tmp_path, name):
    _, newest = save(tmp_path, 1, 2)
    damaged = (newest / name).read_bytes()
    (newest / name).write_bytes(damaged[: len(damaged) // 2])
    with pytest.warns(UserWarning, match="epoch_000002: damaged"):
        assert load_newest(tmp_path, arrays(), PRINT).content["epoch"] == 1


def test_all_damaged(tmp_path):
    (path,) = save(tmp_path, 1)
    (path / "arrays.safetensors").unlink()
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(UserError, match="every checkpoint is damaged"):
        load_newest(tmp_path, arrays(), PRINT)


def test_a_changed_setting_is_named(tmp_path):
    save(tmp_path, 1)
    with pytest.raises(UserError, match=r"training.lr was 0.1 and is now 0.2"):
        load_newest(tmp_path, arrays(), PRINT | {"training.lr": 0.2})


def test_checkpoints_of_other_settings_are_set_aside(tmp_path):
    save(tmp_path / "now", 1)
    assert set_aside_if_changed(tmp_path / "now", tmp_path / "aside", PRINT) is None
    said = set_aside_if_changed(tmp_path / "now", tmp_path / "aside", PRINT | {"data/train.h5": "e" * 64})
    assert said == "data/train.h5 changed"
    assert saved_checkpoints(tmp_path / "now") == []
    assert len(saved_checkpoints(tmp_path / "aside")) == 1


def test_another_model_is_refused(tmp_path):
    save(tmp_path, 1)
    other = arrays()
    other["params"]["w"] = np.zeros(4, np.float32)
    with pytest.raises(UserError, match=r"\['params'\]\['w'\] does not match"):
        load_newest(tmp_path, other, PRINT)


def test_half_written_ones_are_invisible_and_removed(tmp_path):
    save(tmp_path, 1)
    (tmp_path / ".epoch_000002.123.tmp").mkdir()
    assert len(saved_checkpoints(tmp_path)) == 1
    remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["epoch_000001"]
