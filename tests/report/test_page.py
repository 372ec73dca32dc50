"""The page as a file: what it holds, how large it is, and that it asks nothing of a network."""

import re

import pytest

from forgefield.errors import UserError
from forgefield.report import read_runs, write_report


@pytest.fixture(scope="module")
def page(make_run, tmp_path_factory):
    """Two runs side by side."""
    root = tmp_path_factory.mktemp("results")
    runs = read_runs([make_run(root, "slow", 40), make_run(root, "<quick>", 40, scale=2.0, lr=1e-2)])
    assert write_report(runs, root / "report.html") == 2
    return (root / "report.html").read_text()


def test_nothing_is_loaded_from_elsewhere(page):
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"']?(?:https?:)?//", page)
    assert "@import" not in page


def test_it_shows_settings_in_which_runs_differ_and_provenance(page):
    assert re.search(r"<th>training.lr</th><td>0.001</td><td>0.01</td>", page)
    assert "<th>training.epochs</th>" not in page
    assert re.search(r"<th>sha256.a.xyz</th><td>aaaa</td>", page)
    assert re.search(r"<th>git_commit</th><td>0123abc</td>", page)
    assert "&lt;quick&gt;" in page
    assert "<quick>" not in page
    assert re.search(r"lt;quick\S{1,10}gt;: all 540 values", page)


def test_100_000_points_are_below_5_mb(make_run, tmp_path):
    run = make_run(tmp_path, "large", 1250, repeat=6)
    write_report(read_runs([run]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "98,750 of the 101,250 values" in text or "all 101,250" in text
    assert len(text.encode()) < 5e6


def test_a_damaged_run_is_an_error_or_left_out(make_run, tmp_path, capsys):
    good, bad = make_run(tmp_path, "good", 12), make_run(tmp_path, "bad", 12)
    (bad / "metrics.json").write_text("{}")
    with pytest.raises(UserError, match=r"bad.*metrics\.json"):
        read_runs([good, bad])
    assert [run.name for run in read_runs([good, bad], leave_out=True)] == ["good"]
    assert capsys.readouterr().err.startswith("warning: left out: ")


@pytest.mark.parametrize(("paths", "message"), [([], "holds no evaluated run"), (["none"], "none: no metrics.json")])
def test_without_runs_it_says_so(tmp_path, paths, message):
    with pytest.raises(UserError, match=message):
        read_runs([tmp_path / path for path in paths])


def test_a_damaged_picture_is_named(make_run, tmp_path):
    run = make_run(tmp_path, "a", 12)
    (run / "parity_forces.png").write_bytes((run / "parity_forces.png").read_bytes()[:5000])
    with pytest.raises(UserError, match=r"parity_forces\.png: cannot be read .*; draw it again with `forgefield plot`"):
        write_report(read_runs([run]), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_run_without_predictions_is_left_out_of_all(make_run, tmp_path, capsys):
    runs = [make_run(tmp_path, name, 12) for name in ("good", "bad")]
    (runs[1] / "predictions_test.h5").unlink()
    assert [run.name for run in read_runs(runs, leave_out=True)] == ["good"]
    assert "predictions_test.h5: no such file; evaluate the run again" in capsys.readouterr().err
