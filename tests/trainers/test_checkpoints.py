import json
from pathlib import Path

import numpy as np
import pytest

from forgefield.errors import MachineError, UserError
from forgefield.files import sha256_of
from forgefield.trainers.checkpoints import (
    load_newest,
    newest_checkpoint,
    save_checkpoint,
    saved_checkpoints,
)
from forgefield.trainers.history import HistoryRow
from forgefield.trainers.record import Place

PARTIAL = {"steps": 0, "loss_sum": 0.0, "waited": 0.0, "seconds": 0.0}
RECORD = {"rows": [], "best_epoch": 1, "best_loss": None, "partial": PARTIAL}


def arrays(scale=1.0):
    return {"w": np.arange(3.0, dtype=np.float32) * scale, "scalar": np.array(scale)}


def content(number):
    return {"number": number, "fingerprint": {}, "notes": {}, "complete": False, "record": RECORD}


def save(directory, *places, **settings):
    return [save_checkpoint(directory, Place(*p), arrays(i), content(i), **settings) for i, p in enumerate(places)]


def test_comes_back_bit_for_bit(tmp_path):
    (path,) = save(tmp_path, (1, 0))
    loaded = load_newest(tmp_path)
    assert loaded.path == path
    assert loaded.arrays.keys() == arrays().keys()
    for name, wanted in arrays(0).items():
        assert loaded.arrays[name].dtype == wanted.dtype
        assert loaded.arrays[name].shape == wanted.shape
        assert np.array_equal(loaded.arrays[name], wanted)
    assert loaded.content["number"] == 0


def test_the_newest_are_kept_however_long_their_numbers(tmp_path):
    save(tmp_path, (9, 0), (10, 0), (10, 7), (10, 1_000_000), (11, 0))
    assert [p.name for p in saved_checkpoints(tmp_path)] == ["epoch_000011", "epoch_000010_step_1000000"]
    save(tmp_path, (12, 0), keep=3)
    assert len(saved_checkpoints(tmp_path)) == 3


def test_a_place_is_told_from_a_name():
    for place in (Place(3), Place(3, 7), Place(0, 1_000_000)):
        assert Place.of(Path("x") / place.name) == place
    assert Place.of(Path("damaged_epoch_000003")) is None
    assert [str(p) for p in (Place(3), Place(3, 7), Place(0, 1))] == [
        "epoch 3",
        "epoch 3 and 7 steps of epoch 4",
        "1 step of epoch 1",
    ]


def test_nothing_saved(tmp_path):
    assert load_newest(tmp_path / "absent") is None
    assert newest_checkpoint(tmp_path / "absent") is None


@pytest.mark.parametrize("name", ["arrays.safetensors", "content.json", "complete.json"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_damaged_one_is_passed_over_loudly_and_put_aside(tmp_path, capsys, name, is_there):
    _, newest = save(tmp_path, (1, 0), (1, 5))
    if is_there:
        damaged = (newest / name).read_bytes()
        (newest / name).write_bytes(damaged[: len(damaged) // 2])
    else:
        (newest / name).unlink()
    assert load_newest(tmp_path).content["number"] == 0
    first, second = capsys.readouterr().err.splitlines()
    reason = "" if is_there else f"{newest / name}: no such file; remove this checkpoint)"
    assert first.startswith(f"{newest}: damaged checkpoint passed over ({reason}")
    assert second == (
        f"continues from {tmp_path}/epoch_000001, which is older; {tmp_path}/damaged_{newest.name} can be removed"
    )
    # it does not count among those that are kept
    save(tmp_path, (1, 0), (1, 1))
    assert [p.name for p in saved_checkpoints(tmp_path)] == ["epoch_000001_step_000001", "epoch_000001"]
    assert load_newest(tmp_path)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["arrays.safetensors", "content.json", "complete.json"])
def test_one_that_cannot_be_read_just_now_is_not_damaged(tmp_path, name):
    _, newest = save(tmp_path, (1, 0), (2, 0))
    file = newest / name
    file.rename(tmp_path / name)
    file.symlink_to(file)  # an error of the file system that also root meets
    with pytest.raises(MachineError, match=rf"^{file}: cannot be read \(Too many levels of symbolic links\); repair"):
        load_newest(tmp_path)
    (tmp_path / name).rename(file)
    assert load_newest(tmp_path).path == newest


ROW = dict.fromkeys(HistoryRow.__annotations__)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fingerprint": None}, "fingerprint: missing"),
        ({"complete": None}, "complete: missing; expected whether nothing is left"),
        ({"record": None}, "record: missing; expected how far the training is"),
        ({"record": {k: v for k, v in RECORD.items() if k != "best_loss"}}, "record.best_loss: missing"),
        ({"record": RECORD | {"more": 1}}, "record.more: unknown key"),
        ({"record": RECORD | {"partial": PARTIAL | {"steps": -1}}}, "record.partial.steps: expected"),
        ({"record": RECORD | {"rows": [ROW | {"lr": "x"}]}}, "record.rows.0.lr: expected"),
        ({"record": RECORD | {"rows": [ROW | {"x": 1}]}}, "record: a row without exactly"),
        (None, "holds a list, expected an object"),
    ],
)
def test_content_that_lacks_something_is_passed_over_with_the_reason(tmp_path, capsys, change, reason):
    _, newest = save(tmp_path, (1, 0), (2, 0))
    text, mark = newest / "content.json", newest / "complete.json"
    left = {k: v for k, v in (json.loads(text.read_text()) | (change or {})).items() if v is not None}
    text.write_text(json.dumps(left if change else []))
    noted = json.loads(mark.read_text())
    mark.write_text(json.dumps(noted | {"sha256": noted["sha256"] | {text.name: sha256_of(text)}}))
    assert load_newest(tmp_path).content["number"] == 0
    assert reason in capsys.readouterr().err


def test_another_format(tmp_path):
    (path,) = save(tmp_path, (1, 0))
    (path / "complete.json").write_text('{"forgefield_format": 99}')
    with pytest.raises(UserError, match="epoch_000001: checkpoint format 99, expected 2; remove"):
        load_newest(tmp_path)


def test_all_damaged(tmp_path):
    (path,) = save(tmp_path, (1, 0))
    (path / "arrays.safetensors").unlink()
    for _ in range(2):  # also the next time
        with pytest.raises(UserError, match="every checkpoint is damaged"):
            load_newest(tmp_path)


def test_half_written_ones_are_invisible(tmp_path):
    save(tmp_path, (1, 0))
    (tmp_path / ".epoch_000002.123.tmp").mkdir()
    (tmp_path / ".epoch_000000.123.old").mkdir()
    assert len(saved_checkpoints(tmp_path)) == 1
