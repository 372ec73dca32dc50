"""Energy shifts from a fit, from isolated atoms and from the configuration."""

import json
from dataclasses import replace

import numpy as np
import pytest

from forgefield.config.evaluation import StatisticsConfig
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.models.potential import save_potential
from forgefield.statistics import compute_statistics, log_lines

POSITIONS = np.array([[0.0, 0.0, 0.0], [0.96, 0.0, 0.0], [-0.24, 0.93, 0.0]])
WATER = Structure(np.array([8, 1, 1]), POSITIONS, energy=-14.0)
ISOLATED = json.dumps({"unit": "eV", "energies": {"H": -2.0, "O": -8.0}})


@pytest.fixture
def statistics_of(tmp_path, write_store, untrained):
    """A function: statistics of two water molecules, with the config and the source's isolated atoms."""

    def compute(isolated="{}", pretrained=False, **config):
        old = {1: -1.0, 6: -5.0, 8: -2.0}
        save_potential(replace(untrained, pretrained=pretrained, energy_shifts=old), tmp_path / "model")
        store = write_store([WATER, WATER], isolated_atoms=isolated)
        return compute_statistics(store, tmp_path / "model", StatisticsConfig(**config))

    return compute


def test_isolated_atoms_of_a_model_from_scratch(statistics_of):
    statistics = statistics_of(ISOLATED)
    assert statistics["energy_shifts"] == {"H": -2.0, "C": 0.0, "O": -8.0}
    assert statistics["energy_shifts_from"] == "isolated atoms"
    assert statistics["residual"]["after"]["mae"] == pytest.approx(2 / 3)


def test_isolated_atoms_of_a_pretrained_model_only_if_asked_for(statistics_of):
    assert statistics_of(ISOLATED, pretrained=True)["energy_shifts_from"] == "fit to what the model's energies leave"
    statistics = statistics_of(ISOLATED, pretrained=True, energy_shifts="isolated_atoms")
    assert statistics["energy_shifts"] == pytest.approx({"H": -2.0, "C": -5.0, "O": -8.0})
    assert statistics["energy_shift_corrections"] == pytest.approx({"H": -1.0, "C": 0.0, "O": -6.0})


@pytest.mark.parametrize(("isolated", "config"), [("{}", {}), (ISOLATED, {"energy_shifts": "fit"})])
def test_else_the_fit(statistics_of, isolated, config):
    statistics = statistics_of(isolated, **config)
    assert statistics["energy_shifts_from"] == "fit to the energies"
    assert statistics["residual"]["after"]["mae"] == pytest.approx(0, abs=1e-12)


def test_too_few_isolated_atoms_are_not_taken_unless_asked_for(statistics_of):
    some = json.dumps({"unit": "eV", "energies": {"H": -2.0}})
    assert statistics_of(some)["energy_shifts_from"] == "fit to the energies"
    with pytest.raises(UserError, match=r"train.h5: isolated atoms in the source: none for O, which the data has"):
        statistics_of(some, energy_shifts="isolated_atoms")


def test_given_values(statistics_of):
    statistics = statistics_of(energy_shifts={"H": -1.5, "O": "-1e1", "C": -3})
    assert statistics["energy_shifts"] == {"H": -1.5, "C": -3.0, "O": -10.0}
    assert statistics["energy_shifts_from"] == "the configuration"
    with pytest.raises(UserError, match=r"statistics.energy_shifts: none for O, which the data has; add it, or set"):
        statistics_of(energy_shifts={"H": -1.5})


def test_the_ridge_is_named(statistics_of):
    statistics = statistics_of(ridge=0.5)
    assert statistics["composition"]["ridge"] == 0.5
    assert 0 < statistics["residual"]["after"]["mae"] < 14 / 3


def test_the_log_says_where_shifts_are_from_and_names_outliers(statistics_of):
    statistics = statistics_of(ISOLATED)
    frames = [{"source_index": 3 * i, "value": 1.0} for i in range(7)]
    statistics["outliers"]["force_max"] = {"count": 7, "limit": 12.5, "frames": frames}
    first, second, third = log_lines(statistics)
    assert first == "energy shifts (eV) by isolated atoms: H -2, C 0, O -8"
    assert second.startswith("they leave an error of 666.7 meV/atom (MAE); the shifts are given, not fitted")
    assert third == "7 outliers by largest force, beyond 12.5 eV/Å: frames 0, 3, 6, 9, 12, ..."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("isolated", "expected auto, fit, isolated_atoms or energies in eV such as {H: -13.6}, found 'isolated'"),
        ({}, "expected auto"),
        ({"Hx": 1.0}, "'Hx' is no chemical symbol"),
        ({False: 1.0}, "False is no chemical symbol .YAML takes No for false"),
        ({"H": "low"}, "H: expected an energy in eV, found 'low'"),
        ({"H": float("nan")}, "H: expected an energy in eV, found nan"),
    ],
)
def test_mistakes_in_the_configuration(given, message):
    with pytest.raises(ValueError, match=message):
        StatisticsConfig(energy_shifts=given)
