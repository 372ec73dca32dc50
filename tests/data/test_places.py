"""Where the frames of a source are."""

import pickle

import pytest

from forgefield.data.places import Places, placed
from forgefield.errors import FrameError, UserError

FILES = Places([("a.xyz", 0), ("b.xyz", 4)])


@pytest.mark.parametrize(
    ("places", "indices", "words"),
    [
        (FILES, [3], "a.xyz, frame 3"),
        (FILES, [4], "b.xyz, frame 0"),
        (FILES, [6, 0, 3], "a.xyz, frames 0, 3; b.xyz, frame 2"),
        (Places([("b.xyz", 4)]), [6], "b.xyz, frame 2"),
        (Places(otherwise="train.h5: "), [3, 1], "train.h5: frames 1, 3"),
        (Places(), [3], "frame 3"),
    ],
)
def test_a_frame_is_counted_in_its_file(places, indices, words):
    assert places.words(indices) == words


def test_a_mistake_names_the_file_and_the_model():
    error = pickle.loads(pickle.dumps(FrameError(5, "no atoms")))  # it may come from another process
    assert str(error) == "frame 5: no atoms"
    with pytest.raises(UserError, match=r"^b\.xyz, frame 1: no atoms$"), placed(FILES):
        raise error
    with pytest.raises(UserError, match=r"^b\.xyz, frame 1, trained model: no atoms$"), placed(FILES, "trained model"):
        raise error
