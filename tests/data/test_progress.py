"""What a log shows of a long conversion; on a terminal it is rich's bar."""

import re

from forgefield.data.progress import ConversionProgress


def test_a_log_has_lines_with_the_time_left(capsys):
    with ConversionProgress("reading", every=0.0) as progress:
        progress.part(0.25)
        progress.frames(1000)
    line = capsys.readouterr().err
    assert re.fullmatch(r"reading: 1000 frames, 25 %, about \d+ s left\n", line)


def test_where_the_whole_is_not_known_frames_are_counted(capsys):
    with ConversionProgress("reading", every=0.0) as progress:
        progress.frames(3)
    assert re.fullmatch(r"reading: 3 frames in \d+ s\n", capsys.readouterr().err)


def test_a_short_conversion_says_nothing(capsys):
    with ConversionProgress("reading") as progress:
        progress.part(0.5)
        progress.frames()
    assert capsys.readouterr() == ("", "")
