"""Frame numbers of a split in files."""

import json

import numpy as np
import pytest

from forgefield.data.split_files import ranges, read_split
from forgefield.errors import UserError

USABLE = np.array([0, 1, 3, 4, 5, 7, 8, 9])
SOUND = {"train": "0-1, 3-4", "valid": [7], "test": "9"}


@pytest.fixture
def written(tmp_path):
    """A function that writes JSON to a file and returns its path."""

    def write(content):
        (tmp_path / "split.json").write_text(json.dumps(content))
        return tmp_path / "split.json"

    return write


def test_ranges():
    assert ranges(np.array([0, 1, 2, 4, 6, 7])) == "0-2, 4, 6-7"
    assert ranges(np.array([5])) == "5"


def test_text_and_lists(written):
    parts = read_split(written(SOUND), USABLE, [])
    assert {part: positions.tolist() for part, positions in parts.items()} == {
        "train": [0, 1, 2, 3],
        "valid": [5],
        "test": [7],
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"valid": [1]}, "frame 1 is listed twice"),
        ({"valid": "2"}, "frame 2 is not in the source, or is left out there"),
        ({"valid": "10-99999999999999"}, "frame 10 is not in the source"),
        ({"valid": "7, 500"}, "frame 500 is not in the source"),
        ({"valid": "9-5"}, "valid: the range 9-5 runs backwards; write 5-9"),
        ({"vaild": [5]}, "unknown part 'vaild'; did you mean valid"),
        ({"split": SOUND | {"comment": 1}}, "unknown part 'comment'; expected one of: train, valid, test"),
        ({"valid": "four"}, "valid: expected \"0-9, 12\" or a list of frame numbers, found 'four'"),
        ({"valid": [1.5]}, "valid: expected"),
        ({"valid": None}, "valid: expected"),
        ({"test": []}, "test: expected"),
        ({"sources": [{"sha256": "00"}]}, "the split of other source files"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(written, change, message):
    with pytest.raises(UserError, match=message):
        read_split(written(SOUND | change), USABLE, ["0f"])


def test_no_such_file(tmp_path):
    with pytest.raises(UserError, match=r"split.json: no such file; name the conversion.json of an earlier conversion"):
        read_split(tmp_path / "split.json", USABLE, [])
