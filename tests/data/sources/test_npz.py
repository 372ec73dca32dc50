"""The npz files of sGDML and rMD17."""

import numpy as np
import pytest

from forgefield.errors import UserError

KCAL = 1 / 23.060548
UNITS = {"energy": "kcal/mol", "length": "angstrom"}


@pytest.fixture
def arrays():
    """Three frames of water in sGDML's names."""
    random = np.random.default_rng(0)
    return {
        "z": np.array([8, 1, 1], np.uint8),
        "R": random.uniform(0, 3, (3, 3, 3)),
        "E": random.normal(size=(3, 1)),
        "F": random.normal(size=(3, 3, 3)),
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.npz"


def assert_read(structures, arrays):
    assert len(structures) == 3
    for i, s in enumerate(structures):
        assert s.numbers.tolist() == [8, 1, 1]
        assert s.source_index == i
        np.testing.assert_allclose(s.positions, arrays["R"][i], rtol=1e-7)
        assert s.energy == pytest.approx(float(arrays["E"].ravel()[i]) * KCAL, rel=1e-7)
        np.testing.assert_allclose(s.forces, arrays["F"][i] * KCAL, rtol=1e-7)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_sgdml(path, arrays, read, save):
    save(path, **arrays)
    structures, source = read(path, units=UNITS)
    assert_read(structures, arrays)
    assert source.keys.found == {"energy": "E", "forces": "F"}
    assert not structures[0].pbc.any()


def test_rmd17(path, arrays, read):
    names = {"z": "nuclear_charges", "R": "coords", "E": "energies", "F": "forces"}
    np.savez(path, old_indices=np.arange(3), **{names[key]: value.squeeze() for key, value in arrays.items()})
    structures, source = read(path, units=UNITS)
    assert_read(structures, arrays)
    assert source.keys.found == {"energy": "energies", "forces": "forces"}
    assert source.keys.unused == ["old_indices"]


def test_more_frames_than_one_block(path, read):
    random = np.random.default_rng(0)
    positions = random.uniform(0, 3, (1000, 2, 3))
    np.savez(path, z=[1, 1], R=positions, E=np.arange(1000.0), F=positions)
    structures, _ = read(path, units={"energy": "eV", "length": "angstrom"})
    assert [s.energy for s in structures] == list(range(1000))
    np.testing.assert_array_equal([s.forces for s in structures], positions)


def test_single_precision_and_column_order(path, arrays, read):
    np.savez(path, **arrays | {"R": np.asfortranarray(arrays["R"].astype(np.float32))})
    assert_read(read(path, units=UNITS)[0], arrays)


def test_units_that_the_file_states_suffice(path, arrays, read):
    np.savez(path, **arrays, e_unit="kcal/mol", r_unit=b"Ang")
    structures, source = read(path)
    assert_read(structures, arrays)
    assert (source.files[0]["units"].energy, source.files[0]["units"].length) == ("kcal/mol", "angstrom")


def test_units_of_the_file_that_the_config_contradicts(path, arrays, read):
    np.savez(path, **arrays, e_unit="kcal/mol", r_unit="Ang")
    with pytest.raises(UserError, match=r"a.npz: energy in the file is in kcal/mol, but units.energy is eV"):
        read(path, units={"energy": "eV"})


def test_units_of_the_file_that_nobody_knows(path, arrays, read):
    np.savez(path, **arrays, e_unit="kcal/mole", r_unit="Ang")
    with pytest.raises(UserError, match=r"a.npz: unknown energy unit 'kcal/mole'; did you mean 'kcal/mol'"):
        read(path)


@pytest.mark.parametrize(("given", "missing"), [({}, "energy"), ({"energy": "kcal/mol"}, "length")])
def test_units_are_never_guessed(path, arrays, read, given, missing):
    np.savez(path, **arrays)
    with pytest.raises(UserError, match=f"a.npz: the file does not state its units; set units.{missing}, such as"):
        read(path, units=given)


def test_lattice_vectors_are_columns(path, arrays, read):
    lattice = np.array([[9.0, 1, 2], [0, 9, 3], [0, 0, 9]])
    np.savez(path, **arrays, lattice=lattice)
    structures, _ = read(path, units=UNITS)
    np.testing.assert_array_equal(structures[0].cell, lattice.T)
    assert structures[0].pbc.all()


def test_named_keys(path, arrays, read):
    np.savez(path, z=arrays["z"], R=arrays["R"], ccsd=arrays["E"], gradient_free=arrays["F"])
    structures, _ = read(path, units=UNITS, keys={"energy": "ccsd", "forces": "gradient_free"})
    assert_read(structures, arrays)


BROKEN = {
    "forces of the wrong length": (
        {"F": np.zeros((3, 2, 3))},
        r"a.npz, frame 0: forces has shape \(2, 3\), expected \(3, 3\)",
    ),
    "too few forces": ({"F": np.zeros((2, 3, 3))}, r"a.npz: F has 2 rows, but R 3; repair the file"),
    "two energies a frame": ({"E": np.zeros((3, 2))}, r"a.npz, frame 0: energy has shape \(2,\), expected \(\)"),
    "numbers of another molecule": ({"z": np.array([8, 1])}, r"R has shape \(3, 3, 3\) and z \(2,\); expected"),
    "no numbers": ({"z": None}, "no array named z or nuclear_charges or .*; the file has R, E, F"),
    "no positions": ({"R": None}, "no array named R or coords"),
    "no labels": ({"E": None, "F": None}, "no energies and no forces found; .* Keys there: none"),
    "no frames": ({key: np.zeros((0, 3, 3)) for key in "RF"} | {"E": np.zeros(0)}, "a.npz: no frames in it"),
    "an infinite energy": ({"E": np.array([1, 2, np.inf])}, "a.npz, frame 2: energy NaN or infinite"),
    "a force that is not a number": (
        {"F": np.full((3, 3, 3), np.nan)},
        "a.npz, frame 0: forces NaN or infinite at atom 0",
    ),
    "two atoms on one point": ({"R": np.zeros((3, 3, 3))}, "a.npz, frame 0: atoms 0 and 1 are on one point"),
    "Python objects": ({"z": np.array([8, 1, None])}, "a.npz: an array holds Python objects, which can run"),
    "an energy of Python objects": (
        {"E": np.array([1.0, 2.0, 3.0], object)},
        "a.npz: E holds Python objects, which are",
    ),
    "energies in words": (
        {"E": np.array(["1", "2", "3"])},
        "a.npz: E holds <U1 elements, which are no numbers; save it",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(path, arrays, read, case):
    change, match = BROKEN[case]
    np.savez(path, **{key: value for key, value in (arrays | change).items() if value is not None})
    with pytest.raises(UserError, match=match):
        read(path, units=UNITS)


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_truncated(path, arrays, read, keep):
    np.savez_compressed(path, **arrays)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(UserError, match=r"a.npz: not a readable npz file"):
        read(path, units=UNITS)


def test_damaged(path, arrays, read):
    np.savez(path, **arrays)
    content = bytearray(path.read_bytes())
    content[content.index(arrays["F"].tobytes()) + 8] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a.npz: not a readable npz file .*CRC"):
        read(path, units=UNITS)


def test_one_array_only(path, read):
    np.save(path.with_suffix(".npy"), np.zeros(3))
    path.with_suffix(".npy").rename(path)
    with pytest.raises(UserError, match=r"a.npz: not a readable npz file .a single array"):
        read(path, units=UNITS)


def test_real_md17(shared_data, read):
    path = shared_data / "npz/md17_ethanol_2000.npz"
    structures, _ = read(path, units=UNITS)
    content = np.load(path)
    assert len(structures) == 2000
    assert structures[0].numbers.tolist() == [6, 6, 8, 1, 1, 1, 1, 1, 1]
    # Ethanol's total energy is about -154.9 hartree in DFT.
    assert structures[0].energy / 27.211386 == pytest.approx(-154.9, abs=0.3)
    np.testing.assert_allclose(structures[1999].forces, content["F"][1999] * KCAL, rtol=1e-7)


def test_a_real_rmd17_file_with_too_few_numbers(shared_data, read):
    """Somebody cut every array to ten rows, the twelve atomic numbers of benzene too."""
    with pytest.raises(UserError, match=r"coords has shape \(10, 12, 3\) and nuclear_charges \(10,\); expected"):
        read(shared_data / "npz/rmd17_benzene_10.npz", units=UNITS)
