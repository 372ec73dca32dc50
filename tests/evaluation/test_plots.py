"""Pictures and the table of a run whose predictions are made up."""

import io
import os
import re

import h5py
import numpy as np
import pytest
from matplotlib import rc_context
from rich.console import Console

from forgefield.config.evaluation import PlotsConfig
from forgefield.errors import UserError
from forgefield.evaluation.metrics import compute_metrics
from forgefield.evaluation.metrics_file import FORMAT, read_metrics, read_splits
from forgefield.evaluation.parity import parity_figure
from forgefield.evaluation.parity_values import QUANTITIES, ParityValues
from forgefield.evaluation.plots import _figures, plot_run
from forgefield.evaluation.predictions import create_predictions, write_rows
from forgefield.evaluation.style import STYLE, origin_of
from forgefield.evaluation.summary import print_summary
from forgefield.evaluation.values import METRIC_UNITS
from forgefield.files import read_json, sha256_of, write_json

MODEL = "0" * 64
HISTORY = """epoch,step,lr,train_loss,valid_loss,valid_energy_mae_meV_per_atom,valid_forces_mae_meV_per_A,seconds
1,10,0.001,2.0,3.0,9.0,80.0,1.5
2,20,0.001,1.0,2.0,,40.0,1.5
"""


@pytest.fixture
def run(tmp_path):
    """30 structures of 2 and 3 atoms: errors of exactly 0.2 eV and 0.1 eV/Å, and a tenth of that after training."""
    rng = np.random.default_rng(0)
    n_atoms = np.arange(30) % 2 + 2
    energy, forces = rng.normal(-400, 1, 30), rng.normal(0, 1, (30, 3, 3))
    forces[n_atoms == 2, 2] = 0.0
    columns = {
        "n_atoms": n_atoms,
        "source_index": np.arange(30),
        "species": np.array([[8, 1, 0], [8, 1, 1]])[np.arange(30) % 2],
        "reference/energy": energy,
        "reference/forces": forces,
    }
    errors = {"foundation": (9.0, 0.1), "refitted": (0.2, 0.1), "finetuned": (0.02, 0.01)}
    for variant, (of_energy, of_forces) in errors.items():
        columns |= {f"{variant}/energy": energy + of_energy, f"{variant}/forces": forces + of_forces}
    write_run(tmp_path / "tiny", columns, list(errors))
    return tmp_path / "tiny"


def write_run(path, columns, variants):
    path.mkdir()
    n = len(columns["n_atoms"])
    with h5py.File(path / "predictions_test.h5", "w") as file:
        create_predictions(file, "test", variants, n=n, max_atoms=3, stress=False, model=MODEL)
        write_rows(file, 0, columns)
    splits, parts = compute_metrics(path / "predictions_test.h5", variants, stress=False)
    about = {"format": FORMAT, "model": MODEL, "predictions": {"test": sha256_of(path / "predictions_test.h5")}}
    about |= {"units": METRIC_UNITS, "bootstrap": {"level": 0.95, "resamples": 1000, "blocks": 1000}}
    write_json(path / "metrics.json", about | {"splits": {"test": splits}, "parts": {"test": parts}})
    (path / "history.csv").write_text(HISTORY)


def test_all_pictures_are_written_whole_and_small(run):
    for name in ("parity_stress.svg", "data_overview.png", "own.png"):
        (run / name).touch()
    paths = plot_run(run, PlotsConfig(dpi=60))
    assert not (run / "parity_stress.svg").exists()  # of before
    assert not (run / "data_overview.png").exists()
    assert (run / "own.png").exists()
    stems = ("parity_energy", "parity_forces", "error_by_element", "error_by_force", "learning_curve")
    assert [p.name for p in paths] == [f"{stem}.{form}" for stem in stems for form in ("png", "svg")]
    for path in paths:
        start = path.read_bytes()[:8]
        assert start == b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else start.startswith(b"<?xml")
        assert path.stat().st_size < 300_000
    assert {origin_of(path) for path in paths if path.suffix == ".png"} == {sha256_of(run / "metrics.json")}
    assert not list(run.glob(".*"))


def test_equal_numbers_give_equal_bytes(run):
    config = PlotsConfig(dpi=60)
    first = [path.read_bytes() for path in plot_run(run, config)]
    assert [path.read_bytes() for path in plot_run(run, config)] == first


def test_values_leave_out_padding_and_absent_labels(run):
    """15 structures of 3 atoms and 15 of 2, less one structure of 2 atoms without forces."""
    with h5py.File(run / "predictions_test.h5", "a") as file:
        file["reference/forces"][0] = np.nan
    ((reference, predicted),) = ParityValues(run / "predictions_test.h5", QUANTITIES["forces"]).of("finetuned")
    assert reference.size == 3 * (15 * 3 + 14 * 2)
    np.testing.assert_allclose(predicted - reference, 0.01)


def test_panels_share_axes_and_state_their_errors_with_units(run):
    variants = dict(read_splits(run)["test"].variants())
    errors = {variant: variants[variant].energy_per_atom for variant in ("refitted", "finetuned")}
    figure = parity_figure(run / "predictions_test.h5", "test", QUANTITIES["energy"], list(errors), errors)
    left, right, below = figure.axes
    assert left.get_xlim() == left.get_ylim() == right.get_xlim() == right.get_ylim()
    assert [left.get_title(), right.get_title()] == ["zero-shot, refitted (test)", "fine-tuned (test)"]
    text = "\n".join(words.get_text() for words in right.texts)
    assert "N = 30" in text
    assert f"MAE {1000 * errors['finetuned'].mae:.3g} meV/atom" in text
    (top, _) = figure.subfigs
    assert top.get_supxlabel() == "reference energy − composition fit (eV/atom)"
    assert left.get_ylabel() == "predicted energy −\ncomposition fit (eV/atom)"
    assert below.get_xlabel() == "error (meV/atom)"
    drawn = left.collections[0].get_offsets()
    assert len(drawn) <= 30
    assert np.abs(drawn).max() < 2  # less the energies of the atoms, not near -160 eV/atom


@pytest.fixture
def from_scratch(run):
    """A run from scratch on the same structures, with errors of exactly 0.06 eV and 0.03 eV/Å."""
    with h5py.File(run / "predictions_test.h5") as file:
        columns = {name: file[name][()] for name in ("n_atoms", "source_index", "species")}
        columns |= {f"reference/{name}": file[f"reference/{name}"][()] for name in ("energy", "forces")}
    columns |= {f"trained/{name}": columns[f"reference/{name}"] + e for name, e in (("energy", 0.06), ("forces", 0.03))}
    write_run(run.parent / "scratch", columns, ["trained"])
    return run.parent / "scratch"


def test_a_run_from_scratch_is_shown_beside(run, from_scratch):
    with rc_context(STYLE):
        figures = dict(_figures(run, read_metrics(run), None, from_scratch))
        for name in ("error_by_element", "error_by_force"):  # whose legends are as wide as the picture
            figures[name].draw_without_rendering()
            extent = figures[name].legends[0].get_window_extent()
            assert 0 <= extent.x0 <= extent.x1 <= figures[name].bbox.width
    for name, axes, before in (("parity_energy", 2, "zero-shot, refitted"), ("parity_forces", 2, "zero-shot")):
        legend = figures[name].axes[axes].get_legend()
        assert [text.get_text() for text in legend.get_texts()] == [before, "fine-tuned", "from scratch"]
    bars = figures["error_by_element"].axes[0].containers
    widths = [bar.get_width() for bar in bars[-2]]  # behind them, their intervals
    assert widths == pytest.approx([30.0] * len(widths))
    lines = {line.get_label(): line for line in figures["error_by_force"].axes[0].lines}
    assert lines["from scratch"].get_ydata() == pytest.approx(30.0)
    output = io.StringIO()
    print_summary(run, Console(file=output, width=120), from_scratch)
    assert re.search(r"from scratch\s.*\s30\s", output.getvalue())


def test_only_a_run_from_scratch_on_the_same_structures_is(run, from_scratch):
    with pytest.raises(UserError, match="tiny: holds no errors of a model from scratch on the test data"):
        plot_run(run, PlotsConfig(), scratch=run)
    with h5py.File(from_scratch / "predictions_test.h5", "a") as file:
        file["source_index"][0] = 99  # from another file
        file["reference/forces"][29, 2, 2] = np.nan
    with pytest.raises(UserError, match=r"scratch/predictions_test\.h5: not the file that metrics\.json is of"):
        plot_run(run, PlotsConfig(), scratch=from_scratch)
    accept_predictions(from_scratch)
    with pytest.raises(UserError, match=r"scratch/predictions_test\.h5: of other structures or labels than .*tiny"):
        plot_run(run, PlotsConfig(), scratch=from_scratch)


def test_a_run_from_scratch_is_not_beside_in_what_it_was_not_evaluated_for(run, from_scratch):
    content = read_json(from_scratch / "metrics.json")
    write_json(run.parent / "other/metrics.json", content)
    content["splits"]["test"]["trained"]["forces"].update(n=0, mae=None)
    write_json(from_scratch / "metrics.json", content)
    figures = dict(_figures(run, read_metrics(run), None, from_scratch))
    for name, n in (("parity_energy", 3), ("parity_forces", 2)):
        assert len(figures[name].axes[2].get_legend().get_texts()) == n
    assert len(figures["error_by_element"].legends[0].get_texts()) == 2
    output = io.StringIO()
    print_summary(from_scratch, Console(file=output, width=120), run.parent / "other")
    assert re.search(r"from scratch\s.*\s–\s", output.getvalue())  # its own errors


def test_a_run_from_scratch_has_one_panel(tmp_path):
    columns = {
        "n_atoms": np.full(4, 3),
        "source_index": np.arange(4),
        "species": np.full((4, 3), 6),
        "reference/energy": np.arange(4.0),
        "reference/forces": np.ones((4, 3, 3)),
        "trained/energy": np.arange(4.0),
        "trained/forces": np.ones((4, 3, 3)),
    }
    write_run(tmp_path / "scratch", columns, ["trained"])
    assert len(plot_run(tmp_path / "scratch", PlotsConfig(dpi=60))) == 10


def test_pictures_of_forces_that_the_data_lack_say_so(tmp_path):
    """The workflow expects all of them."""
    numbers, energies = np.full((4, 3), 6), np.arange(4.0)
    columns = {"n_atoms": np.full(4, 3), "source_index": np.arange(4), "species": numbers}
    columns |= {"reference/energy": energies, "reference/forces": np.full((4, 3, 3), np.nan)}
    columns |= {"trained/energy": energies, "trained/forces": np.ones((4, 3, 3))}
    write_run(tmp_path / "energies", columns, ["trained"])
    assert len(plot_run(tmp_path / "energies", PlotsConfig(dpi=60))) == 10
    figures = dict(_figures(tmp_path / "energies", read_metrics(tmp_path / "energies"), None))
    for name in ("parity_forces", "error_by_element", "error_by_force"):
        assert [text.get_text() for text in figures[name].texts] == ["the test data have no forces"]


def test_a_run_without_metrics_says_what_to_do(tmp_path):
    with pytest.raises(UserError, match=r"no metrics\.json; evaluate the run first"):
        plot_run(tmp_path, PlotsConfig())


def test_a_run_without_predictions_says_what_to_do(run):
    (run / "predictions_test.h5").unlink()
    with pytest.raises(UserError, match=r"predictions_test\.h5: no such file; make it with `forgefield evaluate`"):
        plot_run(run, PlotsConfig())


def edited(change):
    """A function that changes the predictions file of a run."""

    def edit(run):
        with h5py.File(run / "predictions_test.h5", "a") as file:
            change(file)

    return edit


def cut(share):
    def edit(run):
        path = run / "predictions_test.h5"
        os.truncate(path, int(share * path.stat().st_size))

    return edit


def scratch(run):
    """Zeros over one compressed block of forces; the file still opens."""
    with h5py.File(run / "predictions_test.h5") as file:
        chunk = file["finetuned/forces"].id.get_chunk_info(0)
    with open(run / "predictions_test.h5", "r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(bytes(chunk.size))


def accept_predictions(run):
    """As if ``metrics.json`` were of the predictions that are there."""
    predictions = {"test": sha256_of(run / "predictions_test.h5")}
    write_json(run / "metrics.json", read_json(run / "metrics.json") | {"predictions": predictions})


def test_other_predictions_than_those_of_the_metrics_are_refused(run):
    """One number changed by 0.1 eV/Å, of which the file itself tells nothing."""
    edited(lambda file: file["finetuned/forces"].write_direct(file["finetuned/forces"][()] + 0.1))(run)
    with pytest.raises(UserError, match=r"predictions_test\.h5: not the file that metrics\.json is of, by its sha256"):
        plot_run(run, PlotsConfig(dpi=60))


def rename(file, name):
    file.move(name, "elsewhere")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (cut(0.0), "not an HDF5 file; make one with"),
        (cut(0.1), "a damaged or truncated HDF5 file"),
        (cut(0.99), "a damaged or truncated HDF5 file"),
        (scratch, "a damaged or truncated HDF5 file"),
        (edited(lambda file: rename(file, "finetuned/energy")), "finetuned/energy has shape None"),
        (edited(lambda file: rename(file, "reference")), "reference/energy has shape None"),
        (edited(lambda file: rename(file, "species")), "n_atoms has shape"),
        (edited(lambda file: file.attrs.pop("forgefield_format")), "predictions of format None, expected 1"),
        (edited(lambda file: file["finetuned/forces"].write_direct(np.full((30, 3, 3), np.nan))), "holds NaN"),
        (edited(lambda file: file["finetuned/energy"].write_direct(np.full(30, np.inf))), "energy holds NaN or inf"),
        (edited(lambda file: file["reference/energy"].write_direct(np.full(30, np.nan))), "0 values of refitted/en"),
    ],
)
def test_damaged_predictions_are_one_line_with_file_and_way_out(run, edit, message):
    edit(run)
    accept_predictions(run)
    with pytest.raises(UserError) as caught:
        plot_run(run, PlotsConfig(dpi=60))
    found = str(caught.value)
    assert found.startswith(f"{run}/predictions_test.h5: ")
    assert message in found
    assert found.endswith(" with `forgefield evaluate`")


@pytest.mark.parametrize("text", ["", "epoch\n1\n", HISTORY + "3\n", HISTORY.replace("2.0", "two")])
def test_a_damaged_history_is_one_line_with_file_and_way_out(run, text):
    (run / "history.csv").write_text(text)
    with pytest.raises(UserError, match=r"history\.csv: expected numbers under epoch, .*`forgefield train` writes it"):
        plot_run(run, PlotsConfig(dpi=60))


def test_the_table_has_zero_shot_beside_fine_tuned_in_milli_units(run):
    (run / "parity_forces.png").touch()  # of before
    output = io.StringIO()
    print_summary(run, Console(file=output, width=80), drawn=[run / "parity_energy.png"])
    text = output.getvalue()
    assert max(map(len, text.splitlines()[:-1])) <= 80
    row = next(line for line in text.splitlines() if "fine-tuned" in line)
    assert row.split() == ["test", "fine-tuned", "8.33", "8.5", "10", "10"]
    assert "refitted: energy shifts fitted to the training set, nothing else trained\n" in text
    assert "meV/atom" in text
    assert re.findall(r"Parity plot: (.*)\n", text) == [f"{run}/parity_energy.png"]


def test_a_table_with_every_column_fits_80_columns_without_wrapping(tmp_path, errors, metrics_content):
    """The widest there is: large errors of the energy, stresses, and a split without labels of them."""
    large, small = errors(mae=728.5714, rmse=728.5714), errors(mae=0.5604, rmse=0.0001234)
    none = errors(n=0, mae=None, rmse=None)
    of_variant = metrics_content["splits"]["test"]["trained"]
    of_variant |= {"energy_per_atom": large, "forces": small, "stress": none}
    split = dict.fromkeys(("foundation", "refitted", "finetuned"), of_variant)
    run = tmp_path / "a-dataset-with-a-long-name-a-foundation-model-with-a-long-name-jax"
    write_json(run / "metrics.json", metrics_content | {"splits": {"valid": split, "test": split}})
    output = io.StringIO()
    print_summary(run, Console(file=output, width=80))
    lines = output.getvalue().splitlines()
    assert lines[0] == f"Errors of {run.name}"
    rows = [line for line in lines if "zero-shot, refitted" in line]
    assert [row.split() for row in rows] == [
        [split, "zero-shot,", "refitted", "728,571", "728,571", "560", "0.123", "–", "–"] for split in ("valid", "test")
    ]
    assert max(map(len, lines)) <= 80
