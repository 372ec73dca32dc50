"""Trajectories of CP2K: positions, forces and cells in a file each."""

import numpy as np
import pytest

from forgefield.errors import UserError

HARTREE, BOHR = 27.211386246, 0.529177210544


@pytest.fixture
def run(tmp_path):
    """Three steps of two atoms, written as CP2K does."""
    random = np.random.default_rng(0)
    vectors = {kind: random.normal(size=(3, 2, 3)) for kind in ("pos", "frc")}
    for kind, array in vectors.items():
        text = ""
        for i, frame in enumerate(array):
            text += f"       2\n i = {i * 5:8d}, time = {i * 2.5:12.3f}, E = {-17.0 - i:20.10f}\n"
            text += "".join(
                f"  {s:2s}" + "".join(f"{x:20.10f}" for x in row) + "\n" for s, row in zip("OH", frame, strict=True)
            )
        (tmp_path / f"water-{kind}-1.xyz").write_text(text)
    rows = "".join(f"{i * 5:8d} {i * 2.5:12.3f}  9 0 0  0 {9 + i} 0  0 0 9 {81 * (9 + i)}\n" for i in range(3))
    (tmp_path / "water-1.cell").write_text("#   Step   Time [fs]       Ax [Angstrom] ...\n" + rows)
    return tmp_path, vectors


def test_positions_forces_and_cells(run, read):
    folder, vectors = run
    structures, source = read(folder / "water-pos-1.xyz")
    assert source.files[0]["format"] == "cp2k"
    assert [s.energy for s in structures] == pytest.approx([-17 * HARTREE, -18 * HARTREE, -19 * HARTREE], rel=1e-9)
    for i, found in enumerate(structures):
        assert found.numbers.tolist() == [8, 1]
        np.testing.assert_allclose(found.positions, vectors["pos"][i], atol=1e-9)
        np.testing.assert_allclose(found.forces, vectors["frc"][i] * HARTREE / BOHR, atol=1e-8)
        np.testing.assert_array_equal(found.cell, np.diag([9.0, 9 + i, 9]))
        assert found.pbc.all()


def test_positions_alone(run, read):
    folder, _ = run
    (folder / "water-frc-1.xyz").unlink()
    (folder / "water-1.cell").unlink()
    structures, _ = read(folder / "water-pos-1.xyz")
    assert structures[0].forces is None
    assert not structures[0].pbc.any()


def test_units_are_cp2ks_own(run, read):
    with pytest.raises(UserError, match=r"energy in the file is in eV, but units\.energy is hartree; correct one"):
        read(run[0] / "water-pos-1.xyz", units={"energy": "hartree"})


def test_forces_alone_are_no_positions(run, read):
    with pytest.raises(UserError, match=r"water-frc-1\.xyz: has no positions; name water-pos-1\.xyz"):
        read(run[0] / "water-frc-1.xyz")


@pytest.mark.parametrize("name", ["water-frc-1.xyz", "water-1.cell"])
def test_files_of_other_steps(run, read, name):
    path = run[0] / name
    path.write_text(path.read_text().replace(" 5,", " 6,").replace("       5 ", "       6 "))
    with pytest.raises(UserError, match=rf"{name}: has step 6 where the positions have step 5"):
        read(run[0] / "water-pos-1.xyz")


def test_cut_off(run, read):
    path = run[0] / "water-pos-1.xyz"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(UserError, match=r"water-pos-1\.xyz: ends within a frame"):
        read(path)
