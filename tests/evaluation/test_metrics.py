"""Every number of a split against numpy on whole arrays, structure by structure, from a predictions file."""

import h5py
import numpy as np
import pytest

from forgefield.evaluation import predictions as predictions_file
from forgefield.evaluation import values
from forgefield.evaluation.bootstrap import draws
from forgefield.evaluation.metrics import compute_metrics
from forgefield.evaluation.predictions import create_predictions, read_rows, write_rows
from forgefield.evaluation.values import force_errors

N, VARIANT = 41, "trained"
KINDS = [[8, 1, 1], [6, 1, 1, 1, 1], [8, 8]]


@pytest.fixture(scope="module")
def labelled():
    """Numbers, reference and predictions of each structure, of which some have no energy, forces or stress."""
    rng = np.random.default_rng(5)
    structures = []
    for i in range(N):
        numbers = np.array(KINDS[2] if i == 7 else KINDS[i % 2])  # O2 is there once
        n = len(numbers)
        reference = {
            "energy": -1e4 * n + rng.normal(),
            "forces": rng.normal(size=(n, 3)),
            "stress": rng.normal(size=(3, 3)),
        }
        predicted = {name: value + rng.normal(0, 0.1, np.shape(value)) for name, value in reference.items()}
        if i == 3:
            reference["forces"][1] = 0.0  # no direction to compare
        for name, every in (("energy", 6), ("forces", 5), ("stress", 3)):
            if i % every == every - 1:
                reference[name] = np.full_like(reference[name], np.nan)
        structures.append((numbers, reference, predicted))
    return structures


@pytest.fixture(scope="module")
def predictions(labelled, tmp_path_factory):
    """The predictions file; frames from 20 on are of a second source file."""
    path = tmp_path_factory.mktemp("metrics") / "predictions_test.h5"
    sources = [("a.xyz", 0), ("b.xyz", 20)]
    with h5py.File(path, "w") as file:
        create_predictions(file, "test", [VARIANT], n=N, max_atoms=5, stress=True, model="", sources=sources)
        for i, (numbers, reference, predicted) in enumerate(labelled):
            columns = {"n_atoms": [len(numbers)], "source_index": [i], "species": [numbers]}
            for group, values in (("reference", reference), (VARIANT, predicted)):
                columns |= {f"{group}/{name}": [value] for name, value in values.items()}
            write_rows(file, i, {name: np.array(values) for name, values in columns.items()})
    return path


@pytest.fixture(scope="module")
def computed(predictions):
    return compute_metrics(predictions, [VARIANT], stress=True)


def pairs(labelled, quantity, keep=lambda i, numbers: True, atoms=None):
    """(reference, predicted, owner) of a quantity, from loops over structures."""
    found = []
    means = {}
    for name in ("reference", "predicted"):
        for kind in map(tuple, KINDS):
            of_kind = [
                (r if name == "reference" else p)["energy"]
                for numbers, r, p in labelled
                if tuple(numbers) == kind and not np.isnan(r["energy"])
            ]
            means[name, kind] = np.mean(of_kind) if len(of_kind) > 1 else np.nan
    for i, (numbers, reference, predicted) in enumerate(labelled):
        if not keep(i, numbers):
            continue
        energies = reference["energy"], predicted["energy"]
        chosen = np.ones(len(numbers), bool) if atoms is None else numbers == atoms
        forces = reference["forces"][chosen], predicted["forces"][chosen]
        values = {
            "energy": energies,
            "energy_per_atom": tuple(e / len(numbers) for e in energies),
            "relative_energy": tuple(
                e - means[name, tuple(numbers)] for e, name in zip(energies, ("reference", "predicted"), strict=True)
            ),
            "forces": forces,
            "force_norms": tuple(np.sqrt((f**2).sum(axis=1)) for f in forces),
            "stress": (reference["stress"], predicted["stress"]),
        }[quantity]
        found += [(i, a, b) for a, b in zip(*(np.ravel(v) for v in values), strict=True)]
    owner, reference, predicted = np.array(found).T
    return owner, reference, predicted


def expected(reference, predicted):
    present = ~np.isnan(reference)
    error, values = np.abs(predicted - reference)[present], reference[present]
    return {
        "n": present.sum(),
        "absent": (~present).sum(),
        "mae": error.mean(),
        "rmse": np.sqrt((error**2).mean()),
        "max": error.max(),
        "median": np.median(error),
        "p95": np.percentile(error, 95),
        "r2": 1 - (error**2).sum() / ((values - values.mean()) ** 2).sum(),
    }


QUANTITIES = ["energy", "energy_per_atom", "relative_energy", "forces", "force_norms", "stress"]


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_whole_split(labelled, computed, quantity):
    found = computed[0][VARIANT][quantity]
    _, reference, predicted = pairs(labelled, quantity)
    numbers = {name: value for name, value in found.items() if not name.endswith("interval")}
    assert numbers == pytest.approx(expected(reference, predicted), rel=1e-9)


def test_angles_between_forces(labelled, computed):
    angles = []
    for _, reference, predicted in labelled:
        for a, b in zip(reference["forces"], predicted["forces"], strict=True):
            length = np.linalg.norm(a) * np.linalg.norm(b)
            angles.append(np.degrees(np.arccos(a @ b / length)) if length else np.nan)
    angles = np.array(angles)
    found = computed[0][VARIANT]["force_angles"]
    assert found["mae"] == pytest.approx(np.nanmean(angles), rel=1e-9)
    assert found["p95"] == pytest.approx(np.nanpercentile(angles, 95), rel=1e-9)
    assert (found["n"], found["absent"]) == ((~np.isnan(angles)).sum(), np.isnan(angles).sum())
    unlabelled = sum(len(numbers) for numbers, reference, _ in labelled if np.isnan(reference["forces"]).any())
    assert found["absent"] == 1 + unlabelled
    assert found["r2"] is None


def test_forces_that_are_nearly_zero_have_no_angle():
    """Which other rounding, as of another number of devices, would turn."""
    rng = np.random.default_rng(0)
    reference, predicted = rng.normal(size=(2, 200, 3))
    reference[:10] *= 1e-9
    predicted[10:20] *= 1e-9
    (_, _, (_, first)), (_, _, (_, second)) = (
        force_errors(reference, predicted + rounding) for rounding in (0.0, rng.normal(0, 1e-14, (200, 3)))
    )
    assert np.isnan(first).sum() == 20
    assert np.nanmax(np.abs(second / first - 1)) < 1e-11  # without them; with them 1e-6
    assert np.nanmean(second) == pytest.approx(np.nanmean(first), rel=1e-12)


def test_parts_of_the_data(labelled, computed):
    """Each way to divide them, by comparison with the same numbers of what is in a part."""
    parts = computed[1]
    cases = [
        ("composition", "H2O", lambda i, numbers: len(numbers) == 3, None),
        ("size", "5", lambda i, numbers: len(numbers) == 5, None),
        ("file", "b.xyz", lambda i, numbers: i >= 20, None),
        ("element", "O", lambda i, numbers: True, 8),
    ]
    for way, label, keep, atoms in cases:
        part = parts[way][label]
        quantities = ["forces", "force_norms"] if way == "element" else QUANTITIES
        for quantity in quantities:
            _, reference, predicted = pairs(labelled, quantity, keep, atoms)
            found = part["errors"][VARIANT][quantity]
            numbers = {name: value for name, value in found.items() if not name.endswith("interval")}
            assert numbers == pytest.approx(expected(reference, predicted), rel=1e-9), (way, quantity)
        inside = [numbers for i, (numbers, *_) in enumerate(labelled) if keep(i, numbers)]
        if atoms:
            inside = [numbers[numbers == atoms] for numbers in inside if atoms in numbers]
        assert (part["structures"], part["atoms"]) == (len(inside), sum(map(len, inside)))
    assert list(parts["composition"]) == ["H2O", "CH4", "O2"]
    assert list(parts["size"]) == ["2", "3", "5"]
    assert list(parts["file"]) == ["a.xyz", "b.xyz"]
    assert list(parts["element"]) == [*"HOC"]  # those with most atoms first


def test_the_one_structure_of_a_composition_has_no_relative_energy(computed):
    assert computed[1]["composition"]["O2"]["errors"][VARIANT]["relative_energy"]["n"] == 0
    assert computed[1]["composition"]["O2"]["errors"][VARIANT]["relative_energy"]["mae_interval"] is None


def test_intervals_are_those_of_structures_drawn_anew(labelled, computed):
    """Against a loop over the resamples that puts drawn structures together, with all of their atoms."""
    owner, reference, predicted = pairs(labelled, "forces")
    error = np.abs(predicted - reference)
    means = []
    for times in draws(N).astype(int):
        drawn = np.concatenate([error[owner == i] for i in range(N) for _ in range(times[i])])
        means.append(np.nanmean(drawn))
    found = computed[0][VARIANT]["forces"]
    assert found["mae_interval"] == pytest.approx(np.percentile(means, [2.5, 97.5]), rel=1e-9)
    assert found["rmse_interval"][0] < found["rmse"] < found["rmse_interval"][1]


def test_many_sizes_are_ranges_and_of_many_compositions_and_files_some_are_listed(tmp_path):
    path = tmp_path / "predictions_test.h5"
    sizes = np.arange(1, 61)
    with h5py.File(path, "w") as file:
        sources = [(f"{i}.xyz", i) for i in range(58)]
        create_predictions(file, "test", [VARIANT], n=60, max_atoms=60, stress=False, model="", sources=sources)
        species = np.where(np.arange(60) < sizes[:, None], 1, 0)
        columns = {"n_atoms": sizes, "source_index": np.arange(60), "species": species}
        for group in ("reference", VARIANT):
            columns |= {f"{group}/energy": np.zeros(60), f"{group}/forces": np.zeros((60, 60, 3))}
        write_rows(file, 0, columns)
    parts = compute_metrics(path, [VARIANT], stress=False)[1]
    assert len(parts["composition"]) == 50
    assert parts["compositions_left_out"] == 10
    assert [*parts["size"]][:2] == ["1-5", "6-11"]
    assert len(parts["size"]) == 10
    assert sum(part["structures"] for part in parts["size"].values()) == 60
    assert list(parts["file"]) == [f"{i}.xyz" for i in (*range(49), 57)]  # the last has most structures


def test_chunks_of_the_file_do_not_matter(predictions, computed, monkeypatch):
    whole = values.read_rows
    monkeypatch.setattr(values, "read_rows", lambda path, names: whole(path, names, chunk=7))
    again = compute_metrics(predictions, [VARIANT], stress=True)
    for quantity in QUANTITIES:
        for name, value in computed[0][VARIANT][quantity].items():
            assert again[0][VARIANT][quantity][name] == pytest.approx(value, rel=1e-12)


def test_of_large_structures_few_are_read_at_a_time(predictions, monkeypatch):
    monkeypatch.setattr(predictions_file, "ATOMS", 50)
    names = ["n_atoms", "reference/forces"]
    assert [len(rows["n_atoms"]) for rows in read_rows(predictions, names)] == [10, 10, 10, 10, 1]


def test_an_empty_split_has_nothing_to_average(tmp_path):
    path = tmp_path / "predictions_valid.h5"
    with h5py.File(path, "w") as file:
        create_predictions(file, "valid", [VARIANT], n=0, max_atoms=3, stress=False, model="")
    whole, parts = compute_metrics(path, [VARIANT], stress=False)
    assert whole[VARIANT]["forces"]["n"] == 0
    assert whole[VARIANT]["forces"]["median"] is None
    assert parts["element"] == parts["size"] == parts["file"] == {}
