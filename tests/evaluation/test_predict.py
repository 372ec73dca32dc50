"""``predict_file`` against predictions made directly."""

import ase.io
import numpy as np
import pytest
from ase import Atoms
from ase.build import molecule
from ase.constraints import FixAtoms
from ase.stress import full_3x3_to_voigt_6_stress

from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.evaluation.predict import predict_file
from forgefield.models.inference import predict


@pytest.fixture
def frames():
    """Two molecules, one with a fixed atom and an energy of its own, and a periodic cell."""
    water, methanol = molecule("H2O"), molecule("CH3OH")
    water.set_constraint(FixAtoms([0]))
    water.info["energy"] = 99.0
    cell = Atoms("COH", [[0.0, 0, 0], [1.2, 0, 0], [0, 1.1, 0]], cell=[4.0, 4.0, 4.0], pbc=True)
    return [water, methanol, cell]


def test_every_frame_in_order_with_energy_forces_and_stress(frames, foundation, run_files, tmp_path):
    ase.io.write(tmp_path / "in.traj", frames)
    assert predict_file(run_files.foundation, tmp_path / "in.traj", tmp_path / "out.extxyz") == 3
    structures = [Structure(a.numbers, a.positions, np.array(a.cell), a.pbc) for a in frames]
    expected = list(predict(foundation, structures, wanted="virial"))
    written = ase.io.read(tmp_path / "out.extxyz", ":")
    for atoms, original, prediction in zip(written, frames, expected, strict=True):
        np.testing.assert_array_equal(atoms.numbers, original.numbers)
        np.testing.assert_allclose(atoms.positions, original.positions, atol=1e-8)
        assert atoms.get_potential_energy() == pytest.approx(prediction.energy, rel=1e-12)
        np.testing.assert_allclose(atoms.get_forces(), prediction.forces, atol=1e-8)
    stress = full_3x3_to_voigt_6_stress(expected[2].stress)
    np.testing.assert_allclose(written[2].get_stress(), stress, atol=1e-12)
    assert "stress" not in written[0].calc.results


@pytest.mark.parametrize(
    ("in_angstrom", "stated", "given"), [(1.0, {"r_unit": "Ang"}, None), (0.1, {}, "nm"), (0.1, {"r_unit": "nm"}, "nm")]
)
def test_an_npz_file_is_read_in_the_unit_it_states_or_the_one_given(
    in_angstrom, stated, given, frames, foundation, run_files, tmp_path
):
    """As what convert reads: positions of one molecule, and labels, which play no part."""
    water = frames[0]
    positions = water.positions * np.array([1.0, 1.1])[:, None, None]
    np.savez(tmp_path / "in.npz", R=positions * in_angstrom, z=water.numbers, E=np.zeros(2), **stated)
    assert predict_file(run_files.foundation, tmp_path / "in.npz", tmp_path / "out.extxyz", length_unit=given) == 2
    expected = list(predict(foundation, [Structure(water.numbers, r) for r in positions]))
    for atoms, r, prediction in zip(ase.io.read(tmp_path / "out.extxyz", ":"), positions, expected, strict=True):
        np.testing.assert_allclose(atoms.positions, r, atol=1e-8)
        assert atoms.get_potential_energy() == pytest.approx(prediction.energy, rel=1e-12)


@pytest.mark.parametrize(
    ("stated", "given", "message"),
    [
        ({}, None, "an npz file without the unit of its lengths; give it, such as --length-unit angstrom"),
        ({"r_unit": "nm"}, "Å", "lengths in the file are in nm, but the unit given is Å; correct one"),
        ({"r_unit": "furlong"}, None, "unknown length unit 'furlong'; did you mean"),
        ({"z": [8, 1]}, "Å", r"R has shape \(2, 3, 3\) and z \(2,\)"),
    ],
)
def test_a_wrong_npz_file_is_named(stated, given, message, run_files, tmp_path):
    np.savez(tmp_path / "in.npz", **({"R": np.ones((2, 3, 3)), "z": [8, 1, 1]} | stated))
    with pytest.raises(UserError, match=rf"in\.npz: {message}"):
        predict_file(run_files.foundation, tmp_path / "in.npz", tmp_path / "out.extxyz", length_unit=given)


def test_a_frame_is_counted_in_its_own_file(run_files, tmp_path):
    ase.io.write(tmp_path / "a.xyz", [molecule("H2O")] * 2)
    ase.io.write(tmp_path / "b.xyz", [molecule("H2O"), molecule("NH3")])
    with pytest.raises(UserError, match=r"b\.xyz, frame 1: element N is unknown"):
        predict_file(run_files.foundation, tmp_path / "*.xyz", tmp_path / "out.xyz")
    ase.io.write(tmp_path / "b.xyz", [molecule("H2O"), Atoms("OO", np.zeros((2, 3)))])
    with pytest.raises(UserError, match=r"b\.xyz, frame 1: atoms 0 and 1 are on one point"):
        predict_file(run_files.foundation, tmp_path / "*.xyz", tmp_path / "out.xyz")


def test_an_unknown_element_is_named_and_leaves_no_file(run_files, tmp_path):
    ase.io.write(tmp_path / "in.xyz", [molecule("H2O"), molecule("NH3")])
    with pytest.raises(UserError, match=r"in\.xyz, frame 1: element N is unknown"):
        predict_file(run_files.foundation, tmp_path / "in.xyz", tmp_path / "out.xyz")
    assert [p.name for p in tmp_path.iterdir()] == ["in.xyz"]


@pytest.mark.parametrize(
    ("source", "output", "message"),
    [
        ("missing.xyz", "out.xyz", "no such file"),
        ("in.xyz", "out.traj", "ends in .extxyz"),
        ("in.xyz", "out", r"out: a directory; give the name of a file, such as .*/out/predicted\.extxyz"),
    ],
)
def test_wrong_files_are_refused(source, output, message, run_files, tmp_path):
    ase.io.write(tmp_path / "in.xyz", molecule("H2O"))
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=message):
        predict_file(run_files.foundation, tmp_path / source, tmp_path / output)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("notes.txt", b"some text\n", "of a format that ASE does not know"),
        ("frames.npz", b"PK\x03\x04", "not a readable npz file"),
        ("header.xyz", b"water\nO 0 0 0\n", "frame 0: .* 'water' where a number is expected"),
        ("number.xyz", b"1\n\nO 0 0 x\n", "frame 0: .* 'x' where a number is expected"),
        ("short.xyz", b"2\n\nO 0 0 0\n", "frame 0: .* Frame has 1 atoms, expected 2"),
        ("element.xyz", b"1\n\nQq 0 0 0\n", "frame 0: .* 'Qq' is unknown"),
        ("latin.xyz", b"1\ncaf\xe9\nO 0 0 0\n", "frame 0: .* it is not UTF-8 text"),
        ("empty.gen", b"3 C\n", "frame 0: .* its content is laid out in another way, or ends too early"),
    ],
)
def test_an_unreadable_file_is_named_with_a_way_out(name, content, reason, run_files, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=rf"{name}(: |, ){reason}.*; .*save it as extended XYZ \(\.extxyz\)") as raised:
        predict_file(run_files.foundation, tmp_path / name, tmp_path / "out.xyz")
    assert "format`" not in str(raised.value)
