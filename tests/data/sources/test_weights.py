"""Weights that a source gives its structures and labels."""

import ase.io
import h5py
import numpy as np
import pytest

from forgefield.config.dataset import DatasetConfig
from forgefield.data.convert import convert_dataset
from forgefield.errors import UserError


def test_usual_names_are_read_and_multiply(frames, read, tmp_path):
    frames[0].info |= {"config_weight": 2.0, "config_energy_weight": 3.0, "config_forces_weight": 0.0}
    frames[1].info |= {"config_weight": 0.5, "config_virials_weight": 4}
    ase.io.write(tmp_path / "a.extxyz", frames)
    (first, second), source = read(tmp_path / "a.extxyz")
    assert (first.energy_weight, first.forces_weight, first.virial_weight) == (6, 0, 2)
    assert (second.energy_weight, second.forces_weight, second.virial_weight) == (0.5, 0.5, 2)
    assert source.weights.found["energy_weight"] == "config_energy_weight"


def test_without_weights_all_is_one(frames, read, tmp_path):
    ase.io.write(tmp_path / "a.extxyz", frames)
    structures, source = read(tmp_path / "a.extxyz")
    assert {s.energy_weight for s in structures} == {1.0}
    assert source.weights.found == {}


def test_named_keys_replace_the_usual_ones(frames, read, tmp_path):
    frames[0].info |= {"config_weight": 2.0, "importance": 5.0}
    ase.io.write(tmp_path / "a.extxyz", frames)
    (first, second), source = read(tmp_path / "a.extxyz", keys={"weight": "importance"})
    assert (first.forces_weight, second.forces_weight) == (5, 1)
    assert source.warnings == ["1 frames have no importance; their weight is 1"]


def test_weights_reach_the_store_and_the_report(frames, tmp_path):
    frames = [frames[0].copy() for _ in range(10)]
    for i, atoms in enumerate(frames):
        atoms.info |= {"energy": -1.0 * i, "config_weight": float(i)}
        atoms.positions += 0.1 * i
    ase.io.write(tmp_path / "a.extxyz", frames)
    split = {"train": 6, "valid": 2, "test": 2}
    config = DatasetConfig(source=str(tmp_path / "a.extxyz"), split=split)
    report = convert_dataset("a", config, tmp_path / "out")
    with h5py.File(tmp_path / "out/train.h5") as file:
        np.testing.assert_array_equal(file["U_weight"], range(6))
        np.testing.assert_array_equal(file["F_weight"], np.zeros(6))
    assert report["keys"] == {"energy": "energy", "weight": "config_weight"}
    assert report["keys_not_read"] == []


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, "much"])
def test_impossible_weights_name_file_frame_and_key(frames, read, tmp_path, weight):
    frames[1].info["config_weight"] = weight
    ase.io.write(tmp_path / "a.traj", frames)
    with pytest.raises(UserError, match=r"a.traj, frame 1: the weight config_weight is .*expected a number that"):
        read(tmp_path / "a.traj")


def test_a_named_weight_that_is_not_there(frames, read, tmp_path):
    frames[0].info["importance"] = 1.0
    ase.io.write(tmp_path / "a.traj", frames)
    with pytest.raises(UserError, match=r"no frame has keys.weight: 'imprtance'; did you mean 'importance'\? Keys"):
        read(tmp_path / "a.traj", keys={"weight": "imprtance"})
