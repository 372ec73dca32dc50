"""What is kept of the frames that are left out."""

from forgefield.data.reading import LISTED, Rejected
from forgefield.data.sources import RejectedFrame


def test_frames_left_out_are_counted_and_the_first_of_them_listed():
    frames = [RejectedFrame("a.xyz", i, i, "no atoms" if i % 3 else "no labels") for i in range(300)]
    rejected = Rejected()
    for start in range(0, 300, 70):
        rejected.add(frames[start : start + 70])
    assert (rejected.count, rejected.listed) == (300, frames[:LISTED])
    assert rejected.reasons == {"no labels": 100, "no atoms": 200}
    assert rejected.first["no atoms"] == frames[1]
