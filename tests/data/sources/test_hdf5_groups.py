"""HDF5 files with a group for each structure, molecule or number of atoms."""

import h5py
import numpy as np
import pytest

from forgefield.errors import UserError

UNITS = {"energy": "hartree", "length": "bohr"}
HARTREE, BOHR = 27.211386246, 0.529177210544


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.h5"


def test_one_group_for_each_molecule_as_in_spice(path, read, random):
    """SPICE states its units, and has gradients, whose negative the forces are."""
    conformations, gradients = random.uniform(0, 6, (3, 2, 3)), random.normal(size=(3, 2, 3))
    with h5py.File(path, "w") as file:
        group = file.create_group("oh")
        group["atomic_numbers"] = [8, 1]
        group["smiles"] = [b"[O][H]"]
        arrays = {"conformations": conformations, "dft_total_energy": [-75.0, -75.1, -75.2]}
        for key, array in (arrays | {"dft_total_gradient": gradients, "formation_energy": np.zeros(3)}).items():
            group[key] = array
        units = {"conformations": "bohr", "dft_total_energy": "hartree", "dft_total_gradient": "hartree/bohr"}
        for key, unit in units.items():
            group[key].attrs["units"] = unit
    structures, source = read(path)
    assert source.keys.found == {"energy": "dft_total_energy", "forces": "dft_total_forces"}
    assert (source.files[0]["units"].energy, source.files[0]["units"].length) == ("hartree", "bohr")
    assert [s.energy for s in structures] == pytest.approx(np.array([-75.0, -75.1, -75.2]) * HARTREE, rel=1e-9)
    np.testing.assert_allclose(structures[2].positions, conformations[2] * BOHR, rtol=1e-9)
    np.testing.assert_allclose(structures[2].forces, -gradients[2] * HARTREE / BOHR, rtol=1e-9)
    with pytest.raises(UserError, match=r"energy in the file is in hartree, but units\.energy is eV"):
        read(path, units={"energy": "eV"})


def test_missing_numbers_are_nan_as_in_ani(path, read, random):
    energies = np.array([-1.0, np.nan, -3.0])
    forces = random.normal(size=(3, 2, 3))
    forces[2] = np.nan
    with h5py.File(path, "w") as file:
        group = file.create_group("H2")
        group["atomic_numbers"] = np.array([1, 1], np.uint8)
        group["coordinates"] = random.uniform(0, 3, (3, 2, 3))
        group["wb97x_dz.energy"], group["wb97x_dz.forces"] = energies, forces
        group["ccsd(t)_cbs.energy"] = energies
    keys = {"energy": "wb97x_dz.energy", "forces": "wb97x_dz.forces"}
    structures, _ = read(path, units=UNITS, keys=keys)
    assert [s.energy is None for s in structures] == [False, True, False]
    assert [s.forces is None for s in structures] == [False, False, True]


def test_atomic_numbers_of_each_structure(path, read, random):
    with h5py.File(path, "w") as file:
        for n in (3, 2):
            group = file.create_group(f"00{n}")
            group["coord"], group["numbers"] = random.uniform(0, 9, (300, n, 3)), np.tile([8, 1, 1][:n], (300, 1))
            group["energy"], group["forces"] = np.arange(300.0) + n, random.normal(size=(300, n, 3))
            group["_id"] = np.full(300, b"name")
        file["003/numbers"][299] = [1, 1, 1]
    structures, _ = read(path, units={"energy": "eV", "length": "angstrom"})
    assert [s.energy for s in structures[:2]] == [2.0, 3.0]  # groups in the order of their names
    assert [len(s) for s in structures] == [2] * 300 + [3] * 300
    assert structures[-1].numbers.tolist() == [1, 1, 1]


def test_cells(path, read, random):
    with h5py.File(path, "w") as file:
        group = file.create_group("deep/er/a")
        group["positions"], group["numbers"] = random.uniform(0, 3, (2, 3)), [3, 9]
        group["cell"], group["stress"] = np.diag([4.0, 5, 6]), np.diag([0.1, 0.2, 0.3])
        group.attrs["energy"] = -9.0
    (structure,), _ = read(path, units={"energy": "eV", "length": "angstrom"})
    assert structure.pbc.all()
    np.testing.assert_allclose(structure.virial, -120 * np.diag([0.1, 0.2, 0.3]))
    with h5py.File(path, "a") as file:
        file["deep/er/a/pbc"] = [True, True, False]
    assert read(path, units={"energy": "eV", "length": "angstrom"})[0][0].pbc.tolist() == [True, True, False]


def test_a_shape_that_does_not_fit(path, read):
    with h5py.File(path, "w") as file:
        file["a/coord"], file["a/numbers"] = np.zeros((2, 3, 3)), np.zeros((2, 4), int)
    with pytest.raises(UserError, match=r"a\.h5, /a: coord has shape \(2, 3, 3\) and numbers \(2, 4\); expected"):
        read(path, units=UNITS)


def test_a_layout_that_nobody_knows(path, read):
    with h5py.File(path, "w") as file:
        file["weights/layer"] = np.zeros(3)
    with pytest.raises(UserError, match=r"a\.h5: an HDF5 file of no known layout: .* \(it has weights\); set `format`"):
        read(path)


def test_truncated(path, read):
    with h5py.File(path, "w") as file:
        file["a/coord"], file["a/numbers"] = np.zeros((2, 3, 3)), np.zeros((2, 3), int)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"a\.h5: not a readable HDF5 file .*; copy it again or set `format`"):
        read(path, units=UNITS)
