import json

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
from forgefield.trainers.history import HistoryRow

PRINT = {"training.lr": 0.1, "data/train.h5": "f" * 64}


def arrays(scale=1.0):
    return {"w": np.arange(3.0, dtype=np.float32) * scale, "scalar": np.array(scale)}


def content(epoch):
    return {"epoch": epoch, "fingerprint": PRINT, "record": {"rows": [], "best_epoch": epoch, "best_loss": None}}


def save(directory, *epochs):
    return [save_checkpoint(directory, e, arrays(e), content(e)) for e in epochs]


def test_comes_back_bit_for_bit(tmp_path):
    (path,) = save(tmp_path, 1)
    loaded = load_newest(tmp_path, PRINT)
    assert loaded.path == path
    assert loaded.arrays.keys() == arrays().keys()
    for name, wanted in arrays(1).items():
        assert loaded.arrays[name].dtype == wanted.dtype
        assert loaded.arrays[name].shape == wanted.shape
        assert np.array_equal(loaded.arrays[name], wanted)
    assert loaded.content["epoch"] == 1


def test_the_newest_two_are_kept(tmp_path):
    save(tmp_path, 9, 10, 11)
    assert [p.name for p in saved_checkpoints(tmp_path)] == ["epoch_000011", "epoch_000010"]


def test_nothing_saved(tmp_path):
    assert load_newest(tmp_path / "absent", PRINT) is None
    assert set_aside_if_changed(tmp_path / "absent", tmp_path / "aside", PRINT) is None


@pytest.mark.parametrize("name", ["arrays.safetensors", "content.json"])
def test_a_damaged_one_is_passed_over_with_a_warning(tmp_path, name):
    _, newest = save(tmp_path, 1, 2)
    damaged = (newest / name).read_bytes()
    (newest / name).write_bytes(damaged[: len(damaged) // 2])
    with pytest.warns(UserWarning, match="epoch_000002: damaged"):
        assert load_newest(tmp_path, PRINT).content["epoch"] == 1


ROW = dict.fromkeys(HistoryRow.__annotations__)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sha256": None}, "sha256: missing; expected the checksum"),
        ({"fingerprint": None}, "fingerprint: missing"),
        ({"forgefield_format": None}, "forgefield_format: missing"),
        ({"record": None}, "record: missing; expected how far the training is"),
        ({"record": {"rows": [], "best_epoch": 1}}, "record.best_loss: missing"),
        ({"record": {"rows": [], "best_epoch": 1, "best_loss": None, "more": 1}}, "record.more: unknown key"),
        ({"record": {"rows": [ROW | {"lr": "x"}], "best_epoch": 1, "best_loss": 1.0}}, "record.rows.0.lr: expected"),
        ({"record": {"rows": [ROW | {"x": 1}], "best_epoch": 1, "best_loss": 1.0}}, "record: a row without exactly"),
        ({"sha256": "0"}, "arrays.safetensors: its sha256 is another"),
        (None, "holds a list, expected an object"),
    ],
)
def test_content_that_lacks_something_is_passed_over_with_the_reason(tmp_path, change, reason):
    _, newest = save(tmp_path, 1, 2)
    text = newest / "content.json"
    left = {k: v for k, v in (json.loads(text.read_text()) | (change or {})).items() if v is not None}
    text.write_text(json.dumps(left if change else []))
    with pytest.warns(UserWarning, match=rf"epoch_000002: damaged .*{reason}"):
        assert load_newest(tmp_path, PRINT).content["epoch"] == 1
    with pytest.warns(UserWarning, match="damaged"):
        assert set_aside_if_changed(tmp_path, tmp_path.with_name("aside"), PRINT) is None


def test_another_format(tmp_path):
    (path,) = save(tmp_path, 1)
    (path / "content.json").write_text('{"forgefield_format": 99}')
    with pytest.raises(UserError, match="epoch_000001: checkpoint format 99, expected 1; remove"):
        load_newest(tmp_path, PRINT)


def test_all_damaged(tmp_path):
    (path,) = save(tmp_path, 1)
    (path / "arrays.safetensors").unlink()
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(UserError, match="every checkpoint is damaged"):
        load_newest(tmp_path, PRINT)


def test_a_changed_setting_is_named(tmp_path):
    save(tmp_path, 1)
    with pytest.raises(UserError, match=r"training.lr was 0.1 and is now 0.2"):
        load_newest(tmp_path, PRINT | {"training.lr": 0.2})


def test_checkpoints_of_other_settings_are_set_aside(tmp_path):
    save(tmp_path / "now", 1)
    assert set_aside_if_changed(tmp_path / "now", tmp_path / "aside", PRINT) is None
    said = set_aside_if_changed(tmp_path / "now", tmp_path / "aside", PRINT | {"data/train.h5": "e" * 64})
    assert said == "data/train.h5 changed"
    assert saved_checkpoints(tmp_path / "now") == []
    assert len(saved_checkpoints(tmp_path / "aside")) == 1


def test_half_written_ones_are_invisible_and_removed(tmp_path):
    save(tmp_path, 1)
    (tmp_path / ".epoch_000002.123.tmp").mkdir()
    assert len(saved_checkpoints(tmp_path)) == 1
    remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["epoch_000001"]
