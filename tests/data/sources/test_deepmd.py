"""Systems of DeePMD-kit, in folders and in HDF5 files."""

import h5py
import numpy as np
import pytest

from forgefield.errors import UserError


@pytest.fixture
def arrays():
    """Two sets of two frames of water in a box; the type of oxygen is 1."""
    random = np.random.default_rng(0)
    names = {"coord": 9, "force": 9, "energy": None, "virial": 9}
    sets = []
    for _ in range(2):
        content = {key: random.uniform(0, 3, (2, n) if n else (2,)) for key, n in names.items()}
        sets.append(content | {"box": np.tile((np.diag([9.0, 10, 11]) + 0.1).ravel(), (2, 1))})
    return sets


@pytest.fixture
def system(tmp_path, arrays):
    """A folder of these, as DeePMD-kit writes it."""
    path = tmp_path / "water"
    for i, content in enumerate(arrays):
        (path / f"set.00{i}").mkdir(parents=True)
        for key, array in content.items():
            np.save(path / f"set.00{i}" / f"{key}.npy", array)
    (path / "type.raw").write_text("1\n0\n0\n")
    (path / "type_map.raw").write_text("H\nO\n")
    return path


def into_hdf5(system, path, group="/"):
    with h5py.File(path, "a") as file:
        for npy in system.rglob("*.npy"):
            file[f"{group}/{npy.relative_to(system)}"] = np.load(npy)
        file[f"{group}/type.raw"] = np.array([1, 0, 0])
        file[f"{group}/type_map.raw"] = np.array([b"H", b"O"])


def assert_read(structures, arrays):
    assert len(structures) == 4
    for i, found in enumerate(structures):
        content, row = arrays[i // 2], i % 2
        assert found.numbers.tolist() == [8, 1, 1]
        np.testing.assert_array_equal(found.positions, content["coord"][row].reshape(3, 3))
        np.testing.assert_array_equal(found.forces, content["force"][row].reshape(3, 3))
        np.testing.assert_array_equal(found.cell, content["box"][row].reshape(3, 3))
        virial = content["virial"][row].reshape(3, 3)
        np.testing.assert_allclose(found.virial, (virial + virial.T) / 2, rtol=1e-14)
        assert found.energy == content["energy"][row]
        assert found.pbc.all()


def test_a_folder(system, arrays, read):
    structures, source = read(system)
    assert_read(structures, arrays)
    assert source.files == [source.files[0] | {"path": str(system), "format": "deepmd", "frames": 4}]


@pytest.mark.parametrize("group", ["/", "/water"])
def test_an_hdf5_file(system, arrays, read, tmp_path, group):
    into_hdf5(system, tmp_path / "a.hdf5", group)
    structures, source = read(tmp_path / "a.hdf5")
    assert_read(structures, arrays)
    assert source.files[0]["format"] == "deepmd-hdf5"


def test_two_systems_in_one_file(system, read, tmp_path):
    for group in ("/b", "/a"):
        into_hdf5(system, tmp_path / "a.hdf5", group)
    assert len(read(tmp_path / "a.hdf5")[0]) == 8


def test_a_molecule(system, read):
    (system / "nopbc").touch()
    for file in system.rglob("box.npy"):
        file.unlink()
    structures, _ = read(system)
    assert not structures[0].pbc.any()
    assert structures[0].virial is None


def test_mixed_types_with_padding(system, arrays, read):
    """Each frame has its own types; -1 pads."""
    for i in range(2):
        np.save(system / f"set.00{i}/real_atom_types.npy", np.array([[1, 0, 0], [0, 1, -1]]))
    structures, _ = read(system)
    assert [s.numbers.tolist() for s in structures[:2]] == [[8, 1, 1], [1, 8]]
    np.testing.assert_array_equal(structures[1].forces, arrays[0]["force"][1].reshape(3, 3)[:2])


BROKEN = {
    "no elements": (lambda s: (s / "type_map.raw").unlink(), r"water: no type_map\.raw"),
    "an element that is none": (lambda s: (s / "type_map.raw").write_text("H X1"), "'X1', which is no element"),
    "a type too many": (lambda s: (s / "type.raw").write_text("2 0 0"), "not a readable DeePMD system .*out of bounds"),
    "another number of atoms": (lambda s: (s / "type.raw").write_text("0 0"), r"set.000: coord has shape \(2, 9\)"),
    "no box": (lambda s: (s / "set.001/box.npy").unlink(), "set.001: no box; add it, or a file nopbc"),
    "fewer energies": (
        lambda s: np.save(s / "set.000/energy.npy", np.zeros(1)),
        "set.000: energy has 1 rows, but coord 2",
    ),
    "half a file": (
        lambda s: (s / "set.000/force.npy").write_bytes((s / "set.000/force.npy").read_bytes()[:-50]),
        "not a readable DeePMD system",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_systems(system, read, case):
    change, match = BROKEN[case]
    change(system)
    with pytest.raises(UserError, match=match):
        read(system)
