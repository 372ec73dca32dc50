"""Which points of a parity plot are shown, and that each one leads to its own structure."""

import h5py
import numpy as np
import pytest

from forgefield.data.places import Places
from forgefield.evaluation.parity_values import QUANTITIES
from forgefield.report.points import choose_points
from forgefield.report.structures import read_structures

FORCES, ENERGY = QUANTITIES["forces"], QUANTITIES["energy"]


@pytest.fixture(scope="module")
def predictions(make_run, tmp_path_factory):
    """1500 structures, more than are read at a time, of 3 and 6 atoms: 20250 force components."""
    return make_run(tmp_path_factory.mktemp("results"), "a", 1500) / "predictions_test.h5"


def test_few_points_are_all_there_and_in_their_places(predictions):
    chosen = choose_points(predictions, FORCES, ["foundation", "finetuned"], 30_000)
    columns = chosen.columns
    assert chosen.total == len(columns["reference"]) == 1500 * 9 // 2 * 3
    atom, axis = np.divmod(columns["place"], 3)
    with h5py.File(predictions) as file:
        for group in ("reference", "finetuned"):
            assert (file[f"{group}/forces"][()][columns["structure"], atom, axis] == columns[group]).all()
        assert (file["species"][()][columns["structure"], atom] == columns["element"]).all()


def test_energies_are_per_atom_and_without_the_baseline(predictions):
    baseline = np.linspace(-400, -300, 1500)
    chosen = choose_points(predictions, ENERGY, ["finetuned"], 30_000, baseline)
    with h5py.File(predictions) as file:
        expected = (file["reference/energy"][()] - baseline) / file["n_atoms"][()]
    assert (chosen.columns["reference"] == expected).all()
    assert (chosen.columns["structure"] == np.arange(1500)).all()


def test_of_many_the_worst_and_a_fair_part(predictions):
    chosen = choose_points(predictions, FORCES, ["foundation", "finetuned"], 2000)
    everything = choose_points(predictions, FORCES, ["foundation", "finetuned"], 30_000).columns
    errors = np.abs(everything["finetuned"] - everything["reference"])
    shown = np.abs(chosen.columns["finetuned"] - chosen.columns["reference"])
    assert (len(shown), chosen.total) == (2000, len(errors))
    assert np.isin(np.sort(errors)[-200:], shown).all()
    # the others are spread over all structures
    assert np.histogram(chosen.columns["structure"], 5, (0, 1500))[0].min() > 300
    again = choose_points(predictions, FORCES, ["foundation", "finetuned"], 2000)
    assert all((again.columns[key] == chosen.columns[key]).all() for key in chosen.columns)


def test_a_missing_reference_is_no_point(predictions, tmp_path):
    copy = tmp_path / "predictions_test.h5"
    copy.write_bytes(predictions.read_bytes())
    with h5py.File(copy, "r+") as file:
        file["reference/forces"][7] = np.nan
    chosen = choose_points(copy, FORCES, ["finetuned"], 30_000)
    assert chosen.total == 20250 - 18
    assert 7 not in chosen.columns["structure"]


def test_structures_are_described(predictions):
    places = Places([("a.xyz", 0), ("none.xyz", 1000), ("b.xyz", 1000), ("c.xyz", 1500)])
    found = read_structures(predictions, places, np.array([0, 999, 1000, 1499]))
    columns = found.columns
    assert [found.formulas[i] for i in columns["formula"]] == ["H2O", "CH4O", "H2O", "CH4O"]
    assert [found.files[i] for i in columns["file"]] == ["a.xyz", "a.xyz", "b.xyz", "b.xyz"]
    assert found.files == ["a.xyz", "b.xyz"]  # no more than are needed
    assert columns["frame"].tolist() == [0, 999, 0, 499]
    assert columns["atoms"].tolist() == [3, 6, 3, 6]


def test_without_files_frames_have_their_numbers(predictions):
    columns = read_structures(predictions, Places(), np.array([5])).columns
    assert (columns["file"].item(), columns["frame"].item()) == (-1, 5)
