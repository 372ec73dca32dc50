"""Numbers in the pictures of errors, against loops over atoms."""

import shutil

import h5py
import numpy as np
import pytest

from forgefield.evaluation.error_plots import RANGES, element_figure, magnitude_figure
from forgefield.evaluation.metrics_file import Part
from forgefield.evaluation.predictions import create_predictions, write_rows

N = 60


@pytest.fixture(scope="module")
def predictions(tmp_path_factory):
    """Forces of 1 to 60 eV/Å along x with errors of a hundredth in each component; one structure has no labels."""
    path = tmp_path_factory.mktemp("errors") / "predictions_test.h5"
    forces = np.zeros((N, 2, 3))
    forces[:, 0, 0] = forces[:, 1, 0] = np.arange(1, N + 1)
    predicted = forces + 0.01 * forces[..., :1]
    forces[7] = np.nan
    columns = {"n_atoms": np.full(N, 2), "source_index": np.arange(N), "species": np.full((N, 2), 1)}
    columns |= {"reference/energy": np.zeros(N), "trained/energy": np.zeros(N)}
    columns |= {"reference/forces": forces, "trained/forces": predicted}
    with h5py.File(path, "w") as file:
        create_predictions(file, "test", ["trained"], n=N, max_atoms=2, stress=False, model="")
        write_rows(file, 0, columns)
    return path


def test_ranges_of_as_many_atoms_by_magnitude(predictions):
    figure = magnitude_figure(predictions, ["trained"])
    (axes,) = figure.axes
    x, y = axes.lines[0].get_data()
    assert len(x) == RANGES
    np.testing.assert_allclose(y, 1000 * 0.01 * x, rtol=1e-9)  # every component is off by a hundredth, in meV/Å
    assert (np.diff(x) > 0).all()
    assert 1 <= x[0] < 6
    assert N - 6 < x[-1] <= N
    guide = axes.lines[1]
    np.testing.assert_allclose(guide.get_ydata(), 100 * np.array(guide.get_xdata()))


def test_forces_that_are_all_zero_have_no_magnitude(predictions, tmp_path):
    copy = shutil.copy(predictions, tmp_path / "predictions_test.h5")
    with h5py.File(copy, "a") as file:
        file["reference/forces"][:] = 0.0
    (axes,) = magnitude_figure(copy, ["trained"]).axes
    assert len(axes.lines[0].get_xdata()) == 0


def test_bars_by_element_with_their_intervals(errors):
    forces = {
        symbol: errors(mae=mae, mae_interval=[mae - 0.02, mae + 0.03]) for symbol, mae in (("O", 0.2), ("H", 0.1))
    }
    forces["Fe"] = errors(n=0, mae=None, rmse=None, max=None, mae_interval=None, rmse_interval=None)  # only in energies
    of_part = {symbol: dict.fromkeys(("forces", "force_norms", "force_angles"), e) for symbol, e in forces.items()}
    elements = {
        symbol: Part.model_validate({"structures": 2, "atoms": 2000, "errors": {"trained": found}})
        for symbol, found in of_part.items()
    }
    figure = element_figure(elements, ["trained"])
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([200, 100])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["O  (2,000)", "H  (2,000)"]
    (bars,) = axes.collections
    assert [line[:, 0] for line in bars.get_segments()] == [pytest.approx([180, 230]), pytest.approx([80, 130])]
