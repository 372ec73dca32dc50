"""What is kept of the frames that are left out."""

from forgefield.data.rejected import LISTED, Rejected
from forgefield.data.sources import RejectedFrame


def test_frames_left_out_are_counted_and_the_first_of_them_listed():
    frames = [RejectedFrame("a.xyz", i, i, "no atoms" if i % 3 else "no labels") for i in range(300)]
    rejected = Rejected()
    for start in range(0, 300, 70):
        rejected.add(frames[start : start + 70])
    assert (rejected.count, rejected.listed) == (300, frames[:LISTED])
    assert rejected.reasons == {"no labels": 100, "no atoms": 200}
    assert rejected.first["no atoms"] == frames[1]


def test_a_file_of_which_no_frame_is_usable_is_named_unless_its_atoms_are_isolated():
    rejected = Rejected()
    for name, reasons in {"a": ["isolated atom"], "b": ["no atoms"] * 2 + ["isolated atom"], "c": ["no atoms"]}.items():
        rejected.add([RejectedFrame(name, i, i, reason) for i, reason in enumerate(reasons)])
        rejected.end_file({"path": name, "unlabelled": []}, is_usable=name == "c")
    assert rejected.warnings == ["b: no usable frame: 1 isolated atom, 2 no atoms"]
