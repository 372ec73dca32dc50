"""What inspection says of files, and that a dataset made of its advice converts."""

import json
from dataclasses import asdict

import ase
import ase.io
import h5py
import numpy as np
import pytest
import yaml
from ase.build import molecule
from ase.calculators.lj import LennardJones

from forgefield.config import load_config
from forgefield.data.convert import convert_dataset
from forgefield.data.inspection import as_yaml, dataset_entry, inspect_files, problems
from forgefield.data.sources import find_files
from forgefield.errors import UserError

# sample -> the units that the entry must name, its other keys, and what the numbers are
SAMPLES = {
    "npz/md17_ethanol_2000.npz": ({"energy": "kcal/mol", "length": "angstrom"}, 2000, "all electrons"),
    "md22/md22_Ac-Ala3-NHMe_5frames.xyz": ({"energy": "kcal/mol", "length": "angstrom"}, 5, "all electrons"),
    "molecules/3bpa_train_300K.xyz": (None, 500, "all electrons"),
    "molecules/ethanol_ccsdt_reduced_100_kcal.xyz": ({"energy": "kcal/mol", "length": "angstrom"}, 100, "electrons"),
    "molecules/solvent_xtb_train_200.xyz": (None, 200, "nothing contradicts eV"),
    "periodic/carbon_gap20_reduced_100.xyz": (None, 100, "nothing contradicts eV"),
    "periodic/high_level_water_10.xyz": (None, 10, "nothing contradicts eV"),
    "periodic/mptrj_10.db": (None, 10, "nothing contradicts eV"),
    "periodic/uio66_mof_finetune_10.xyz": (None, 10, "nothing contradicts eV"),
    "qm_outputs/vasp_Ti_aimd_vasprun.xml": (None, 10, "as the file or its format states"),
    "hdf5/aimnet2_bynatoms_195.h5": ({"energy": "eV", "length": "angstrom"}, 195, "all electrons"),
    "deepmd/water_0": (None, 80, "nothing contradicts eV"),
}


def convert_as_advised(found, source, output):
    """Paste the entry into a configuration, load that and convert."""
    config = load_config(yaml.safe_load(as_yaml(dataset_entry(found, [str(source)]), "my data")))
    return convert_dataset("my_data", config.datasets["my_data"], output)


@pytest.mark.parametrize("file", SAMPLES)
def test_samples_convert_as_advised(shared_data, tmp_path, file):
    units, n_usable, evidence = SAMPLES[file]
    found = inspect_files(find_files(shared_data / file))
    entry = dataset_entry(found, [str(shared_data / file)])
    assert entry.get("units") == units
    assert (found.frames["usable"], found.frames["all"]) == (n_usable, True)
    assert any(line.startswith("energy: ") and evidence in line for line in found.guess.evidence)
    assert problems(found) == []
    report = convert_as_advised(found, shared_data / file, tmp_path / "out")
    assert report["frames"]["usable"] == n_usable
    assert report["keys"].keys() <= found.labels.keys()
    least, most = found.sizes["atoms"]
    assert (report["atoms"]["least"], report["atoms"]["most"]) == (least, most)
    assert report["elements"] == found.sizes["elements"]
    json.dumps(asdict(found), allow_nan=False)


def test_what_is_said_of_md17(shared_data):
    path = shared_data / "npz/md17_ethanol_2000.npz"
    content, kcal = np.load(path), 4184 / 96485.33212331
    found = inspect_files([path])
    assert found.files == [{"path": str(path), "format": "npz", "frames": 2000}]
    assert found.keys == [
        {"key": "E", "type": "float64", "shapes": ["1"], "frames": 2000},
        {"key": "F", "type": "float64", "shapes": ["atoms x 3"], "frames": 2000},
    ]
    assert found.labels["energy"] == {"key": "E", "frames": 2000, "or": []}
    sizes = found.sizes
    assert (sizes["atoms"], sizes["elements"], sizes["periodic"], sizes["cell"]) == ([9, 9], ["H", "C", "O"], 0, None)
    assert sizes["energy_per_atom"] == pytest.approx([content["E"].min() * kcal / 9, content["E"].max() * kcal / 9])
    assert sizes["force_rms"] == pytest.approx(np.sqrt(np.mean(content["F"] ** 2)) * kcal)
    assert sizes["force_max"] == pytest.approx(np.linalg.norm(content["F"], axis=2).max() * kcal)
    slope = next(line for line in found.guess.evidence if line.startswith("slope"))
    assert "199 pairs" in slope
    assert "1.005 times the work of the forces (correlation 1.000): energies and forces fit" in slope


def trajectory(n=50):
    """Argon that moves a little, with the energy, forces and stress of a pair potential."""
    random = np.random.default_rng(0)
    atoms = ase.Atoms("Ar4", [[0, 0, 0], [3.8, 0, 0], [0, 3.8, 0], [0, 0, 3.8]], cell=[11, 12, 13], pbc=True)
    atoms.calc = LennardJones(sigma=3.4, epsilon=0.1, rc=5.4)
    frames = []
    for _ in range(n):
        atoms.positions += random.normal(scale=0.02, size=(4, 3))
        copy = atoms.copy()
        copy.info["dft_energy"], copy.info["dft_stress"] = atoms.get_potential_energy(), atoms.get_stress()
        copy.arrays["dft_forces"] = atoms.get_forces()
        frames.append(copy)
    return frames


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.xyz"


def test_lengths_cells_and_labels_of_a_crystal(path):
    frames = trajectory()
    del frames[3].arrays["dft_forces"]
    ase.io.write(path, frames)
    found = inspect_files([path])
    nearest = min(atoms.get_all_distances(mic=True)[np.triu_indices(4, 1)].min() for atoms in frames)
    assert found.sizes["shortest_distance"][0] == pytest.approx(nearest, rel=1e-6)
    assert found.sizes["cell"] == [11, 13]
    assert found.labels["forces"] == {"key": "dft_forces", "frames": 49, "or": []}
    assert found.labels["stress"] == {"key": "dft_stress", "frames": 50, "or": []}


@pytest.mark.parametrize("unit", ["kcal/mol", "kJ/mol"])
def test_forces_in_another_unit_than_energies_are_found_by_the_slope(path, unit, tmp_path):
    """As in files whose energies were converted to eV and whose forces were forgotten."""
    frames = trajectory()
    factor = {"kcal/mol": 23.0605478, "kJ/mol": 96.4853321}[unit]
    for atoms in frames:
        atoms.arrays["dft_forces"] *= factor
    ase.io.write(path, frames)
    found = inspect_files([path])
    assert found.guess.units.forces == f"{unit}/angstrom"
    entry = dataset_entry(found, [str(path)])
    assert entry["units"] == {"energy": "eV", "length": "angstrom", "forces": f"{unit}/angstrom"}
    convert_as_advised(found, path, tmp_path / "out")


@pytest.mark.parametrize(("unit", "angstrom"), [("angstrom", 1.0), ("bohr", 0.529177), ("nm", 10.0)])
@pytest.mark.parametrize("name", ["CO", "CH3CH2OH", "PH3"])
def test_lengths(path, unit, angstrom, name):
    atoms = molecule(name)
    ase.io.write(path, ase.Atoms(atoms.numbers, atoms.positions / angstrom, info={"energy": -1.0}))
    assert inspect_files([path]).guess.units.length == unit


def test_keys_that_conversion_would_not_find_are_named(tmp_path):
    """ANI-1x: the method with both energies and forces, of several."""
    random = np.random.default_rng(0)
    with h5py.File(tmp_path / "ani.h5", "w") as file:
        group = file.create_group("H2")
        group["atomic_numbers"] = [1, 1]
        group["coordinates"] = np.array([[0.0, 0, 0], [0, 0, 0.74]]) + random.normal(scale=0.01, size=(20, 2, 3))
        for method in ("ccsd(t)_cbs", "wb97x_dz"):
            group[f"{method}.energy"] = np.full(20, -1.17)
        group["wb97x_dz.forces"] = random.normal(scale=0.001, size=(20, 2, 3))
    found = inspect_files([tmp_path / "ani.h5"])
    assert found.names == {"energy": "wb97x_dz.energy", "forces": "wb97x_dz.forces"}
    assert found.labels["energy"]["or"] == ["ccsd(t)_cbs.energy"]
    report = convert_as_advised(found, tmp_path / "ani.h5", tmp_path / "out")
    assert report["keys"] == found.names


def test_two_usual_keys_are_decided(path, tmp_path):
    frames = trajectory()
    for atoms in frames:
        atoms.info["xtb_energy"] = 0.0
    ase.io.write(path, frames)
    found = inspect_files([path])
    assert found.names["energy"] == "dft_energy"
    convert_as_advised(found, path, tmp_path / "out")


def test_a_limit(path):
    ase.io.write(path, trajectory())
    found = inspect_files([path, path], limit=7)
    assert (found.frames["read"], found.frames["all"]) == (7, False)
    assert inspect_files([path], limit=50).frames["all"]


@pytest.mark.parametrize("n", [3, 4, 5, 9, 12])
def test_few_frames_are_split_so_that_no_part_is_empty(path, tmp_path, n):
    ase.io.write(path, trajectory(n))
    convert_as_advised(inspect_files([path]), path, tmp_path / "out")


def test_what_would_stop_a_conversion(path, tmp_path):
    ase.io.write(path, trajectory(2))
    assert "2 usable frames are too few" in problems(inspect_files([path]))[0]
    ase.io.write(path, ase.Atoms("H2", [[0, 0, 0], [0, 0, 0.7]], info={"value": 1.0}))
    assert problems(inspect_files([path]))[-1].startswith("no energies and no forces found")


def test_faulty_frames_are_named_with_their_file(path, tmp_path):
    ase.io.write(path, trajectory(3))
    (tmp_path / "b.xyz").write_text("2\ndft_energy=0.0\nH 0 0 0\nH 0 0 0\n" + path.read_text())
    with pytest.raises(UserError, match=r"b\.xyz, frame 0: atoms 0 and 1 are on one point"):
        inspect_files([tmp_path / "b.xyz", path])
    fewer = "2\nProperties=species:S:1:pos:R:3:dft_forces:R:1 dft_energy=0.0\nH 0 0 0 0\nH 0 0 1 0\n"
    (tmp_path / "b.xyz").write_text(path.read_text() + fewer)
    with pytest.raises(UserError, match=r"b\.xyz, frame 3: forces has shape \(2,\), expected \(2, 3\)"):
        inspect_files([path, tmp_path / "b.xyz"])


def test_files_in_different_units(path, tmp_path):
    ase.io.write(path, trajectory(3))
    arrays = {"R": np.eye(2, 3)[None], "z": [1, 1], "E": [0.0], "F": np.zeros((1, 2, 3))}
    np.savez(tmp_path / "b.npz", **arrays, e_unit="eV", r_unit="Ang")
    with pytest.raises(UserError, match=r"b\.npz: states other units than the files before; inspect it alone"):
        inspect_files([path, tmp_path / "b.npz"])
