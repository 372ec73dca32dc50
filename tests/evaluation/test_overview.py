"""The picture of the data, from real stores of several compositions."""

import numpy as np
import pytest
from matplotlib.colors import same_color

from forgefield.data.store import StoreWriter
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.evaluation.baseline import composition_fit
from forgefield.evaluation.compositions import Compositions, formula
from forgefield.evaluation.overview import FORCES, LOOKS, overview_figure, read_overview
from forgefield.units import Units

ENERGIES = {1: -13.0, 8: -2040.0}  # eV of each atom
SIZES = {"train": 600, "valid": 9, "test": 10}


def structure(i):
    """Water or hydrogen peroxide, with an energy of its atoms plus 0.01 eV each to both sides; some without labels."""
    numbers = np.array([8, 1, 1] if i % 3 else [8, 8, 1, 1])
    n = len(numbers)
    return Structure(
        numbers=numbers,
        positions=np.arange(3 * n).reshape(n, 3) * 0.9,
        energy=None if i % 5 == 4 else sum(ENERGIES[z] for z in numbers.tolist()) + 0.01 * n * (-1) ** (i // 3),
        forces=None if i % 7 == 6 else np.full((n, 3), 3**-0.5),
        source_index=i,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A directory with three stores in kJ/mol and nm, larger than is read at once."""
    path = tmp_path_factory.mktemp("data")
    for split, n in SIZES.items():
        about = {"source": "made up", "source_sha256": "", "split": split}
        settings = {"units": Units("kJ/mol", "nm"), "dtype": np.float64, "has_virial": False, "attributes": about}
        with StoreWriter(path / f"{split}.h5", n_structures=n, max_atoms=4, **settings) as writer:
            writer.append([structure(i) for i in range(n)])
    return path


def test_a_directory_without_data_is_named(tmp_path):
    with pytest.raises(UserError, match=rf"--data {tmp_path}: no structures in train\.h5, valid\.h5, test\.h5;"):
        overview_figure(tmp_path)


def test_what_is_read_of_a_store(data):
    known = Compositions()
    found = read_overview(data / "train.h5", known)
    expected = [structure(i) for i in range(SIZES["train"])]
    np.testing.assert_array_equal(found.n_atoms, [len(s) for s in expected])
    energies = [np.nan if s.energy is None else s.energy for s in expected]
    np.testing.assert_allclose(found.energies, energies, rtol=1e-12)
    assert [formula(counts) for counts in known.counts] in (["H2O", "H2O2"], ["H2O2", "H2O"])
    assert {formula(known.counts[i]) for i in found.composition[::3]} == {"H2O2"}
    one = np.searchsorted(FORCES, 1.0) - 1
    labelled = sum(len(s) for s in expected if s.forces is not None)
    assert found.forces[one - 1 : one + 2].sum() == found.forces.sum() == labelled


def test_energies_are_shown_less_the_fit(data):
    """What is left are the 10 meV per atom, whatever the elements' energies are."""
    figure = overview_figure(data)
    sizes, elements, energies, forces = figure.axes
    (steps, *_) = energies.patches
    counts, edges, _ = steps.get_data()
    filled = np.flatnonzero(counts)
    assert abs(edges[filled[0]]) == pytest.approx(10, abs=1)
    assert edges[filled[-1] + 1] == pytest.approx(10, abs=1)
    assert counts.sum() == pytest.approx(100)
    assert energies.get_xlabel() == "energy − composition fit\n(meV/atom)"
    assert [tick.get_text() for tick in elements.get_xticklabels()] == ["H", "O"]
    share = [bar.get_height() for bar in elements.patches[:2]]
    assert share == pytest.approx([60, 40])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["train (600)", "valid (9)", "test (10)"]
    assert same_color(sizes.patches[1].get_edgecolor(), LOOKS["valid"]["color"])
    assert forces.get_xscale() == "log"


def test_the_fit_finds_the_energies_of_atoms():
    counts = np.array([[2, 1], [2, 2], [4, 1]])
    composition = np.array([0, 1, 2, 0, 1])
    energies = counts[composition] @ [-13.0, -2040.0]
    energies[1] = np.nan
    assert composition_fit(energies, composition, counts) == pytest.approx([-13.0, -2040.0], rel=1e-12)


def test_one_composition_is_fitted_by_its_mean():
    fit = composition_fit(np.array([1.0, 2.0, np.nan, 6.0]), np.zeros(4, int), np.array([[3, 5]]))
    assert np.array([3, 5]) @ fit == pytest.approx(3.0)
