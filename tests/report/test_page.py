"""The page as a file: what it holds, how large it is, and that it asks nothing of a network."""

import html
import re
import shutil

import pytest
from PIL import Image

from forgefield.errors import UserError
from forgefield.files import read_json, write_json
from forgefield.report import Faults, read_runs, write_report
from forgefield.report.pictures import fit_pictures


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


def test_faults_of_a_run_are_errors_or_named_on_the_page(make_run, tmp_path, capsys):
    """Of all runs, four with other files than they should be, two without whole predictions, two with other pictures.

    The good one has a user's own pictures, and a stage that was stopped before it wrote how it was trained.
    """
    names = ["good", "unevaluated", "retrained", "folder", "listed", "damaged", "removed", "torn", "old"]
    runs = dict(zip(names, (make_run(tmp_path, name, 12) for name in names), strict=True))
    (runs["unevaluated"] / "metrics.json").write_text("{}")
    write_json(runs["retrained"] / "model/model.json", {})
    (runs["retrained"] / "model/weights.safetensors").touch()
    (runs["folder"] / "metrics.json").unlink()
    (runs["folder"] / "metrics.json").mkdir()
    (runs["listed"] / "config.yaml").write_text("- lr\n")
    write_json(runs["good"] / "provenance.json", {"trained": None})
    for name in ("own.png", "parity_stress.png"):
        Image.new("RGB", (10, 10)).save(runs["good"] / name)
    predictions = runs["damaged"] / "predictions_test.h5"
    predictions.write_bytes(predictions.read_bytes()[:3000])
    (runs["removed"] / "predictions_test.h5").unlink()
    picture = runs["torn"] / "parity_forces.png"
    picture.write_bytes(picture.read_bytes()[:5000])
    shutil.copy(runs["good"] / "parity_forces.png", runs["old"] / "learning_curve.png")
    write_json(runs["old"] / "metrics.json", read_json(runs["old"] / "metrics.json") | {"units": {"forces": "eV/Å"}})
    (runs["old"] / "parity_forces.png").unlink()
    messages = {
        "unevaluated": r"metrics\.json: format: missing",
        "retrained": r"metrics\.json: of another model than .*retrained/model, by its sha256; evaluate the run again",
        "folder": r"metrics\.json",
        "listed": r"config\.yaml: holds no keys; train the run again, or remove the file",
        "damaged": r"predictions_test\.h5: not the file that metrics\.json is of, .*; evaluate the run again with",
        "removed": r"predictions_test\.h5: no such file; make it with `forgefield evaluate`",
        "torn": r"parity_forces\.png: cannot be read .*; draw it again with `forgefield plot`",
        "old": r"learning_curve\.png: not drawn from this metrics\.json; draw it again with `forgefield plot`",
    }
    page = tmp_path / "report.html"
    for name, message in messages.items():
        with pytest.raises((UserError, OSError), match=message):
            write_report(read_runs([runs[name]]), page)
    with pytest.raises(UserError, match="every run is left out, see above"):
        read_runs([runs["folder"]], Faults(tolerated=True))
    capsys.readouterr()
    assert not page.exists()
    faults = Faults(tolerated=True)
    assert write_report(read_runs([*runs.values()], faults), page, faults) == 5
    lines = re.findall(r'<p class="fault">left out: (.*?)</p>', page.read_text())
    errors = re.findall(r"warning: left out: (.*)", capsys.readouterr().err)
    assert [html.unescape(line) for line in lines] == errors
    assert [any(re.search(message, line) for line in errors) for message in messages.values()] == [True] * 8
    assert len(errors) == 8
    shown = re.findall(r"(\w+): all 162 values of the test set", page.read_text())
    assert {*shown} == {"good", "torn", "old"}
    assert page.read_text().count("data:image/webp") == 3  # all but those two


def test_without_any_predictions_there_is_the_table(make_run, tmp_path):
    run = make_run(tmp_path, "a", 12)
    (run / "predictions_test.h5").unlink()
    faults = Faults(tolerated=True)
    assert write_report(read_runs([run]), tmp_path / "report.html", faults) == 1
    assert "Energy MAE" in (tmp_path / "report.html").read_text()


def test_pictures_of_many_runs_are_smaller_or_left_out(make_run, tmp_path):
    runs = read_runs([make_run(tmp_path, name, 12) for name in ("a", "b", "c")])
    whole = fit_pictures(runs, 10**7, Faults())
    size = len(whole[0][0].address)
    for room, possible in ((2 * size, {3}), (size // 4, {1, 2}), (0, {0})):
        faults = Faults(tolerated=True)
        found = fit_pictures(runs, room, faults)
        assert sum(len(picture.address) for of_run in found for picture in of_run) <= room
        kept = sum(len(of_run) for of_run in found)
        assert kept in possible
        assert any("pictures of" in line for line in faults.lines) == (kept < 3)


@pytest.mark.parametrize(("paths", "message"), [([], "holds no evaluated run"), (["none"], "none: no metrics.json")])
def test_without_runs_it_says_so(tmp_path, paths, message):
    with pytest.raises(UserError, match=message):
        read_runs([tmp_path / path for path in paths])
