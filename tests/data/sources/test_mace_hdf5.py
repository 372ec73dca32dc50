"""Files that mace-torch wrote."""

import h5py
import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.models.mace.torch_reference import quiet_mace


@pytest.fixture
def path(frames, tmp_path):
    """Twelve frames, every second a crystal with stress, as mace-torch prepares them; one is without its energy."""
    with quiet_mace():
        from mace.data.utils import KeySpecification, config_from_atoms, save_configurations_as_HDF5

    keys = KeySpecification(info_keys={"energy": "e", "stress": "s", "head": "head"}, arrays_keys={"forces": "f"})
    configurations = []
    for i in range(12):
        atoms = frames[i % 2].copy()
        results = frames[i % 2].calc.results
        atoms.arrays["f"] = results["forces"]
        if i != 3:
            atoms.info["e"] = results["energy"] + i
        if "stress" in results:
            atoms.info["s"] = results["stress"]
        configurations.append(config_from_atoms(atoms, key_specification=keys))
    with h5py.File(tmp_path / "train_0.h5", "w") as file:
        save_configurations_as_HDF5(configurations, 0, file)
    return tmp_path / "train_0.h5"


def test_frames_come_in_mace_torchs_order(path, read, frames):
    structures, source = read(path)
    assert source.files[0]["format"] == "mace-hdf5"
    energies = [None if i == 3 else frames[i % 2].calc.results["energy"] + i for i in range(12)]
    assert [s.energy for s in structures] == energies
    for found, atoms in zip(structures, frames * 6, strict=True):
        np.testing.assert_array_equal(found.numbers, atoms.numbers)
        np.testing.assert_array_equal(found.positions, atoms.positions)
        np.testing.assert_array_equal(found.pbc, atoms.pbc)
        np.testing.assert_array_equal(found.forces, atoms.calc.results["forces"])
        assert (found.virial is not None) == atoms.pbc.all()
    xx, yy, zz, yz, xz, xy = frames[1].calc.results["stress"]
    stress = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    np.testing.assert_allclose(structures[1].virial, -stress * frames[1].get_volume(), rtol=1e-12)


def test_a_group_that_lacks_something(path, read):
    with h5py.File(path, "a") as file:
        del file["config_batch_0/config_2/positions"]
    with pytest.raises(UserError, match=r"train_0\.h5, config_batch_0/config_2: .*positions.*; write the file again"):
        read(path)
