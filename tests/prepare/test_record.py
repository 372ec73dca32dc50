"""What a run's inputs were made from, also where their making was not finished."""

import pytest

from forgefield.errors import UserError
from forgefield.prepare.record import Record

OLD, NEW = {"settings": {"kind": "old"}, "files": {}}, {"settings": {"kind": "new"}, "files": {}}


@pytest.fixture
def record(tmp_path):
    """A record in which the data, which are there, were made from OLD."""
    (tmp_path / "data").mkdir()
    record = Record(tmp_path / "inputs.json")
    with record.making(tmp_path / "data", OLD):
        pass
    return record


def test_what_has_changed_is_made_again_and_only_then(record, tmp_path):
    assert not record.is_due(tmp_path / "data", OLD)
    with record.making(tmp_path / "data", NEW):
        pass
    assert record.is_due(tmp_path / "data", OLD)
    assert not record.is_due(tmp_path / "data", NEW)


def test_what_a_kill_has_left_is_made_again_whatever_is_asked_for(record, tmp_path):
    with pytest.raises(SystemExit), record.making(tmp_path / "data", NEW):
        raise SystemExit
    assert record.is_due(tmp_path / "data", OLD)
    assert record.is_due(tmp_path / "data", NEW)


def test_a_mistake_leaves_what_was_there(record, tmp_path):
    with pytest.raises(UserError), record.making(tmp_path / "data", NEW):
        raise UserError("no such key")
    assert not record.is_due(tmp_path / "data", OLD)
