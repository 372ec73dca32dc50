"""Energy shifts against values worked out by hand."""

import numpy as np
import pytest

from forgefield.statistics.shifts import composition, fit_shifts

WATER, METHANE, HYDROGEN, NITROGEN = [2, 0, 1, 0], [4, 1, 0, 0], [2, 0, 0, 0], [0, 0, 0, 2]  # H C O N


def test_independent_compositions_give_back_the_shifts():
    counts = np.array([WATER, METHANE, HYDROGEN, NITROGEN])
    shifts = np.array([-13.6, -1029.0, -2041.0, -1485.0])
    fit = fit_shifts(counts, counts @ shifts)
    np.testing.assert_allclose(fit.shifts, shifts, rtol=1e-12)
    assert fit.rank == 4
    assert fit.indistinguishable == []


def test_one_molecule_gets_the_solution_of_least_norm():
    """H2O with 10 eV: shifts proportional to the counts (2, 1), so (4, 2)."""
    fit = fit_shifts(np.array([[2, 1]] * 5), np.full(5, 10.0))
    np.testing.assert_allclose(fit.shifts, [4.0, 2.0], rtol=1e-13)
    assert fit.rank == 1
    assert fit.indistinguishable == [[0, 1]]


def test_only_the_coupled_elements_are_named():
    """Water alone ties H to O, N2 and P4 stand for themselves; methane would add C to the tied group."""
    water_nitrogen = np.array([[2, 1, 0], [0, 0, 2], [2, 1, 2]])
    fit = fit_shifts(water_nitrogen, water_nitrogen @ [1.0, 2.0, 3.0])
    assert fit.indistinguishable == [[0, 1]]
    assert fit.shifts[2] == pytest.approx(3.0)
    assert fit_shifts(np.array([WATER, METHANE]), np.zeros(2)).indistinguishable == [[0, 1, 2], [3]]


def test_weights_decide_between_contradicting_energies():
    """Two H2 of 0 and 8 eV with weights 3 and 1: mean 2 eV, so 1 eV per atom; weight 0 does not count at all."""
    fit = fit_shifts(np.array([[2], [2], [2]]), np.array([0.0, 8.0, np.nan]), np.array([3.0, 1.0, 0.0]))
    assert fit.shifts == pytest.approx([1.0], rel=1e-13)


def test_no_energies_leave_the_shifts_at_zero():
    fit = fit_shifts(np.array([[2, 1]]), np.array([np.nan]), np.zeros(1))
    assert fit.rank == 0
    np.testing.assert_array_equal(fit.shifts, 0.0)


def test_large_totals_keep_their_digits():
    """All-electron totals near -1e5 eV: the fit still resolves 1e-6 eV."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 20, (200, 3))
    shifts = np.array([-13.7, -1035.0, -2043.0])
    np.testing.assert_allclose(fit_shifts(counts, counts @ shifts).shifts, shifts, atol=1e-8)


def test_composition_counts_in_the_given_order():
    np.testing.assert_array_equal(composition(np.array([8, 1, 1]), (1, 6, 8)), [2, 0, 1])


def test_a_ridge_draws_the_shifts_towards_zero_by_the_normal_equations():
    random = np.random.default_rng(0)
    counts, energies, weights = random.integers(0, 9, (50, 3)), random.normal(size=50), random.uniform(size=50)
    weights[:10] = 0
    matrix = counts.T @ (weights[:, None] * counts) + 0.3 * 40 * np.eye(3)
    expected = np.linalg.solve(matrix, counts.T @ (weights * energies))
    np.testing.assert_allclose(fit_shifts(counts, energies, weights, ridge=0.3).shifts, expected, rtol=1e-12)
