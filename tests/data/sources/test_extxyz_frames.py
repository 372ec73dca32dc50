"""Frames of extended XYZ that are read with little work are what ASE makes of them, bit by bit."""

from io import BytesIO, StringIO

import ase
import ase.io
import numpy as np
import pytest
from ase.calculators.singlepoint import SinglePointCalculator
from ase.io.extxyz import read_xyz

from forgefield.data.sources.ase_files import raw_frame
from forgefield.data.sources.extxyz import cut
from forgefield.data.sources.extxyz_frames import read_frame


def by_ase(text):
    (atoms,) = read_xyz(StringIO(text.decode(), newline=None), slice(None))
    return raw_frame(atoms)


def assert_same(found, expected):
    for name in ("numbers", "positions", "cell", "pbc"):
        a, b = getattr(found, name), getattr(expected, name)
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b)
    assert found.values.keys() == expected.values.keys()
    for key, value in expected.values.items():
        assert type(found.values[key]) is type(value), key
        assert getattr(found.values[key], "dtype", None) == getattr(value, "dtype", None), key
        np.testing.assert_array_equal(found.values[key], value, err_msg=key)


def frame(head, *lines):
    return "\n".join([str(len(lines)), head, *lines, ""]).encode()


P = "Properties=species:S:1:pos:R:3"
USUAL = {
    "plain": frame("", "H 0 0 0", "O 1 2.5 -3e-2"),
    "a number for a comment": frame("-12.5", "H 0 0 0"),
    "labels": frame(
        f"{P}:forces:R:3 energy=-1.5 charge=1 virial='1 2 3 4 5 6 7 8 9'", "h 0 0 0 1 2 3", "CL 1 1 1 4 5 6"
    ),
    "keys of one's own": frame(
        f"{P}:dft_forces:R:3:tags:I:1 dft_energy=2 name=a note='two words' ok", "H 0 0 0 1 2 3 7"
    ),
    "cell": frame(f'Lattice="4 0 0 0.5 5 0 0 0 6" {P} stress="1 2 3 2 4 5 3 5 6"', "H 0 0 0"),
    "cell and pbc": frame(f'Lattice="4 0 0 0 5 0 0 0 6" pbc="T F T" {P}', "H 0 0 0"),
    "atomic numbers": frame("Properties=Z:I:1:pos:R:3:charge:R:1 dipole='1 2 3' free_energy=2", "8 0 0 0 0.5"),
    "more columns than named": frame("energy=1", "H 0 0 0 9 9", "H 0 0 1 9 9"),
    "NaN and Windows": frame(f"{P}:forces:R:3", "H 0 0 0 nan 1 inf").replace(b"\n", b"\r\n"),
    "JSON": frame(f'{P} a="_JSON [[1, 2], [3, 4]]"', "H 0 0 0"),
    "no value": frame(f'{P} energy="_JSON null" dipole="_JSON null"', "H 0 0 0"),
    "values in a column": frame(f"{P}:magmoms:R:1:energies:R:1:mass:R:1:momenta:R:3", "H 0 0 0 1 2 3 4 5 6"),
}


@pytest.mark.parametrize("kind", USUAL)
def test_frames_are_those_of_ase(kind):
    assert_same(read_frame(USUAL[kind]), by_ase(USUAL[kind]))


UNUSUAL = {
    "initial charges": frame(f"{P}:initial_charges:R:1", "H 0 0 0 1"),
    "move_mask": frame(f"{P}:move_mask:I:1", "H 0 0 0 1"),
    "words in a column": frame(f"{P}:kind:S:1", "H 0 0 0 a"),
    "logical": frame(f"{P}:kind:L:1", "H 0 0 0 T"),
    "values of a database": frame(f'{P} data="_JSON {{"energy": 1}}"', "H 0 0 0"),
    "not ASCII": frame(f"{P} name=é", "H 0 0 0"),
    "another number of atoms": frame(P, "H 0 0 0", "H 0 0 1").replace(b"2\n", b"3\n", 1),
    "a word for a number": frame(P, "H 0 x 0"),
    "columns missing": frame(P, "H 0 0 0", "H 0 0"),
    "one more and one less": frame(f"{P}:q:R:1", "H 0 0 0 1 2", "H 0 0 0"),
    "no element": frame(P, "Qq 0 0 0"),
    "numbers for symbols": frame("Properties=species:I:1:pos:R:3", "8 0 0 0"),
    "fractions for symbols": frame("Properties=species:R:1:pos:R:3", "1.5 0 0 0"),
    "no positions": frame("Properties=species:S:1", "H"),
    "two columns of one name": frame(f"{P}:a:R:1:a:R:1", "H 0 0 0 1 2"),
    "Lattice of no cell": frame(f"Lattice=5 {P}", "H 0 0 0"),
    "no atoms": b"0\n\n",
    "VEC": b"1\nadf\nH 0 0 0\nVEC1 3 0 0\n",
    "empty": b"",
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_all_others_are_left_to_ase(kind):
    assert read_frame(UNUSUAL[kind]) is None


def test_what_ase_writes(tmp_path):
    random = np.random.default_rng(0)
    atoms = ase.Atoms("NaCl", random.normal(size=(2, 3)), cell=random.normal(size=(3, 3)), pbc=[True, False, True])
    atoms.info |= {"config_type": "a b", "weight": 0.5, "flags": [True, False], "n": 3, "v": random.normal(size=3)}
    atoms.arrays["q"] = random.normal(size=2)
    atoms.calc = SinglePointCalculator(
        atoms, energy=-1.0, forces=random.normal(size=(2, 3)), stress=random.normal(size=6), dipole=np.ones(3)
    )
    ase.io.write(tmp_path / "a.xyz", atoms, format="extxyz")
    text = (tmp_path / "a.xyz").read_bytes()
    assert_same(read_frame(text), by_ase(text))


def test_every_sample(shared_data):
    read = 0
    for path in shared_data.rglob("*.xyz"):
        for chunk in cut(BytesIO(path.read_bytes())):
            for text in chunk.frames[:60]:
                found = read_frame(text)
                assert found is not None, path
                assert_same(found, by_ase(text))
                read += 1
    assert read > 250
