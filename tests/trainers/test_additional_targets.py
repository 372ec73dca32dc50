"""Quantities besides energies, forces and virials, and weights under other names."""

from dataclasses import replace

import h5py
import jax
import numpy as np
import pytest
from conftest import write_store
from launching import train
from pair_potential import (
    CHARGES,
    NEIGHBORS,
    START,
    arrays,
    dipole_template,
    morse_template,
    random_structures,
    with_dipoles,
)

from forgefield.data.hdf5_loader import HDF5ParallelDataLoader
from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.trainers import ForceMatching
from forgefield.trainers.optimizers import optimizer, schedule
from forgefield.units import Units

DIPOLE = {"gammas": {"U": 1.0, "F": 1.0, "dipole": 1.0}, "additional_targets": {"dipole": dipole_template}}


def trainer(lr=0.02, **settings):
    settings = {"batch": 10, "parallelism": "single", "progress": False} | settings
    params = arrays(START | {"charge": [0.0, 0.0]})
    return ForceMatching(params, optimizer("adam", lr), morse_template, NEIGHBORS, **settings)


def trained(data, epochs=2, **settings):
    made = trainer(**settings)
    made.set_datasets(data)
    made.train(epochs)
    return made


@pytest.fixture(scope="module")
def dipoles(labelled):
    return with_dipoles(labelled)


@pytest.fixture
def path(dipoles, tmp_path):
    return write_store(tmp_path / "train.h5", dipoles)


# -- what is learned -------------------------------------------------------------------------------------------------


def test_charges_are_recovered_from_their_dipoles(dipoles):
    made = trained(dipoles, 60, lr=schedule(0.03, 5 * 60, "cosine", final_fraction=1e-3), **DIPOLE)
    # a charge that all atoms have makes no dipole from the mean of their positions
    assert np.diff(made.params["charge"]) == pytest.approx(np.diff(CHARGES), abs=1e-4)
    found = made.predict([replace(s, extra={"note": 1}) for s in dipoles])
    for structure, wanted in zip(found, dipoles, strict=True):
        assert structure.extra["note"] == 1
        if wanted.extra["dipole_weight"]:
            np.testing.assert_allclose(structure.extra["dipole"], wanted.extra["dipole"], atol=1e-3)
    for loaded, predicted in made.predict_batches(dipoles):
        assert predicted.targets["dipole"].shape == (1, 10, 3)
        assert len(loaded.rows) == 10


def test_metrics_leave_out_structures_without_the_label(dipoles):
    made = trainer(**DIPOLE)
    made.set_dataset(dipoles, "testing")
    # all charges are 0 in the beginning
    errors = np.array([s.extra["dipole"] for s in dipoles if s.extra["dipole_weight"]])
    assert len(errors) == 40
    found = made.evaluate()
    assert found["dipole_mae"] == pytest.approx(abs(errors).mean(), rel=1e-12)
    assert found["dipole_rmse"] == pytest.approx((errors**2).mean() ** 0.5, rel=1e-12)
    weights = np.array([s.extra["dipole_weight"] for s in dipoles if s.extra["dipole_weight"]])
    plain = trainer()
    plain.set_dataset(dipoles, "testing")
    added = (weights * (errors**2).mean(axis=1)).sum() / len(dipoles)
    assert found["loss"] == pytest.approx(plain.evaluate()["loss"] + added, rel=1e-12)


def test_without_their_weight_dataset_all_labels_count_once(dipoles, tmp_path):
    known = [replace(s, extra={"dipole": s.extra["dipole"]}) for s in dipoles if s.extra["dipole_weight"]]
    weighted = [replace(s, extra=s.extra | {"one": 1.0}) for s in known]
    settings = DIPOLE | {"weights_keys": {"dipole": "one"}}
    expected = trained(weighted, **settings).params
    for data in (known, write_store(tmp_path / "train.h5", known)):
        assert_equal(trained(data, **DIPOLE).params, expected)


def test_stores_open_or_not_and_lists_are_the_same_data(dipoles, path):
    settings = DIPOLE | {"weights_keys": {"F": "trust"}}
    expected = trained(dipoles, **settings).params
    with h5py.File(path) as file, Store(path) as store:
        for data in (path, file, store):
            assert_equal(trained(data, **settings).params, expected)


def assert_equal(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


# -- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "field"), [("U", "energy"), ("F", "forces"), ("virial", "virial")])
def test_the_weight_0_leaves_a_structure_out_of_that_term(dipoles, path, target, field):
    settings = {"gammas": {"U": 1.0, "F": 1.0, "virial": 1.0}}
    without = [replace(s, **{field: None}) if i % 4 == 0 else s for i, s in enumerate(dipoles)]
    doubled = [replace(s, **{f"{field}_weight": 1.0 + i % 2}) for i, s in enumerate(without)]
    weighted = trained(path, weights_keys={target: "trust"}, **settings)
    assert_equal(weighted.params, trained(doubled, **settings).params)
    assert not np.array_equal(weighted.params["depth"], trained(path, **settings).params["depth"])
    other = trainer(weights_keys={target: "trust"}, **settings)
    for stage, data in (("testing", path), ("validation", dipoles)):
        other.set_dataset(data, stage)
    counted = trainer(**settings)
    counted.set_dataset(without, "testing")
    name = f"{field}_mae"
    assert other.evaluate()[name] == pytest.approx(counted.evaluate()[name], rel=1e-12)
    assert other.evaluate("validation") == pytest.approx(other.evaluate(), rel=1e-12)


def test_a_weight_by_another_name_counts_for_an_additional_target(dipoles, path):
    usable = replace_all(dipoles, dipole_weight=1.0, dipole=np.ones(3))
    renamed = [replace(s, extra={"dipole": np.ones(3), "dipole_weight": s.extra["trust"]}) for s in usable]
    expected = trained(renamed, **DIPOLE).params
    assert_equal(trained(usable, weights_keys={"dipole": "trust"}, **DIPOLE).params, expected)
    assert not np.array_equal(trained(usable, **DIPOLE).params["charge"], expected["charge"])


def replace_all(structures, **extra):
    return [replace(s, extra=s.extra | extra) for s in structures]


# -- however many devices ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(dipoles, tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    for name, structures in (("train", dipoles[:43]), ("valid", dipoles[43:])):
        write_store(directory / f"{name}.h5", structures, Units("kJ/mol", "nm"))
    return directory


@pytest.fixture(scope="module")
def alone(stored, tmp_path_factory):
    words = ["--targets", "--data", stored, "--parallelism", "single"]
    return train(tmp_path_factory.mktemp("trainings") / "alone", words)


@pytest.mark.parametrize(
    ("words", "together", "in_memory"),
    [
        (["--devices", 2], {}, False),
        ([], {"ranks": 2}, False),
        ([], {"ranks": 2}, True),
        (["--devices", 2], {"processes": 2}, False),
    ],
    ids=["2 devices", "2 ranks", "2 ranks with lists in memory", "2 JAX processes with 2 devices each"],
)
def test_the_training_is_the_same_on_all_devices(stored, alone, tmp_path, words, together, in_memory):
    data = [] if in_memory else ["--data", stored]
    found = train(tmp_path / "run", ["--targets", *data, *words], **together)
    assert found.keys() == alone.keys() >= {"['charge']", "dipole_mae", "dipole_rmse"}
    for name, value in alone.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-10, err_msg=name)


def test_a_device_without_a_structure_adds_nothing(dipoles, path):
    """The last of 50 structures is alone in its batch; other devices compute it too, with the weight 0."""
    targets = trainer(**DIPOLE).targets
    loader = HDF5ParallelDataLoader(path, NEIGHBORS, 7, targets=targets, parts=7)
    loader.plan(1)
    *_, last = loader.epoch(0)
    assert last.part_lengths == (1, 0, 0, 0, 0, 0, 0)
    assert [part.targets["dipole"].weight.item() > 0 for part in last.parts[1:]] == [False] * 6


# -- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights_keys": {"Fs": "trust"}}, "weights_keys: unknown term 'Fs'; did you mean 'F'"),
        ({"weights_keys": {"dipole": "trust"}}, "weights_keys: unknown term 'dipole'"),
        ({"weights_keys": {"F": 3}}, "weights_keys: expected the name of the weights of F, found 3"),
        ({"additional_targets": {"dipole": dipole_template}}, "gammas: additional target 'dipole' has none"),
        (DIPOLE | {"additional_targets": {"dipole": 3}}, "additional_targets: dipole is no function"),
        ({"additional_targets": {"F": dipole_template}}, "additional_targets: 'F' means something else already"),
        ({"additional_targets": {"energy": dipole_template}}, "'energy' means something else already"),
        ({"additional_targets": {"x_weight": dipole_template}}, "'x_weight' means something else already"),
        ({"gammas": {"dipole": 1.0}}, "gammas: unknown term 'dipole'"),
    ],
)
def test_mistaken_arguments(x64, settings, message):
    with pytest.raises(UserError, match=message):
        trainer(**settings)


def spoil(key, value, place=3):
    def change(file):
        file[key][place] = value

    return change


def instead(key, value):
    def change(file):
        del file[key]
        if value is not None:
            file[key] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (instead("dipole", None), "no dataset 'dipole' at the root"),
        (instead("trust", None), "no dataset 'trust' at the root"),
        (instead("trust", np.ones((50, 1))), r"dataset trust has shape \(50, 1\); expected \(50,\)"),
        (instead("dipole_weight", np.ones((50, 3))), r"dataset dipole_weight has shape \(50, 3\)"),
        (instead("dipole", np.ones((49, 3))), "datasets of unequal length .*dipole: 49"),
        (instead("dipole", np.full(50, b"x")), "dataset dipole is of type .*; expected numbers"),
        (spoil("trust", -1.0), "structure 3: trust is -1.0; a weight is a number from 0 up"),
        (spoil("trust", np.nan), "structure 3: trust is nan; a weight"),
        (spoil("dipole", np.nan), "structure 3: dipole is not finite; repair it, or give it the weight 0"),
    ],
)
def test_mistaken_stores_are_named(path, change, message):
    with h5py.File(path, "r+") as file:
        change(file)
    made = trainer(weights_keys={"F": "trust"}, **DIPOLE)
    with pytest.raises(UserError, match=f"{path}: {message}"):
        made.set_dataset(path)
    # nothing of it is read by who does not ask for it
    if "unequal" not in message:
        trainer().set_dataset(path)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({}, "structure 3 has no value 'dipole' in extra"),
        ({"dipole": np.ones(2)}, r"dipole of structure 3 has shape \(2,\); expected \(3,\)"),
        ({"dipole": "big"}, "dipole of structure 3 is no number and no array of numbers"),
        ({"dipole": np.ones(3)}, "structure 3 has no value 'trust' in extra"),
        ({"dipole": np.ones(3), "trust": np.ones(1)}, r"trust of structure 3 has shape \(1,\); expected \(\)"),
        ({"dipole": np.ones(3), "trust": -0.5}, "structure 3: trust is -0.5; a weight is a number from 0 up"),
        ({"dipole": np.full(3, np.inf), "trust": 1}, "structure 3: dipole is not finite"),
    ],
)
def test_mistaken_structures_are_named(dipoles, extra, message):
    data = [replace(s, extra=extra) if i == 3 else s for i, s in enumerate(dipoles)]
    with pytest.raises(UserError, match=f"dataset: {message}"):
        trainer(weights_keys={"F": "trust"}, **DIPOLE).set_dataset(data)


def test_a_function_of_another_shape_than_its_label_is_named(dipoles):
    made = trainer(**DIPOLE | {"additional_targets": {"dipole": lambda params: lambda graph: graph.n_atoms * 1.0}})
    made.set_dataset(dipoles)
    with pytest.raises(UserError, match=r"dipole is \(\) for each structure as the function gives it, and \(3,\) in"):
        made.train(1)


def test_a_loader_must_read_what_is_asked_for(path):
    made = trainer(**DIPOLE)
    settings = {"dtype": np.float64, "seed": 0}
    with pytest.raises(UserError, match=r"loader: .* make it with targets=trainer\.targets"):
        made.set_loader(HDF5ParallelDataLoader(path, NEIGHBORS, 10, **settings))
    made.set_loader(HDF5ParallelDataLoader(path, NEIGHBORS, 10, targets=made.targets, **settings))
    made.train(2)
    assert_equal(made.params, trained(path, **DIPOLE).params)


def test_a_function_may_give_nonsense_where_there_is_no_structure(x64):
    """The place of a structure that is missing from a batch has no atoms; a mean over them is NaN."""

    def template(params):
        return lambda graph: dipole_template(params)(graph) / graph.n_atoms[:, None]

    made = trainer(gammas={"dipole": 1.0}, additional_targets={"dipole": template}, eval_batch=10)
    made.set_dataset(with_dipoles(random_structures(13)), "testing")
    assert np.isfinite(made.evaluate()["dipole_mae"])
