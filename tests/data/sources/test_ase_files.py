"""Every format that ASE reads, with standard and custom keys."""

import sys

import ase.db
import ase.io
import numpy as np
import pytest
from ase.calculators.singlepoint import SinglePointCalculator
from ase.constraints import FixAtoms
from ase.stress import voigt_6_to_full_3x3_stress

from forgefield.errors import UserError

GPA = 160.21766208  # of one eV/Å^3


def assert_same(found, atoms):
    results = atoms.calc.results
    np.testing.assert_array_equal(found.numbers, atoms.numbers)
    np.testing.assert_allclose(found.positions, atoms.positions, atol=1e-7)
    np.testing.assert_allclose(found.cell, atoms.cell, atol=1e-7)
    np.testing.assert_array_equal(found.pbc, atoms.pbc)
    assert found.energy == pytest.approx(results["energy"], rel=1e-7)
    np.testing.assert_allclose(found.forces, results["forces"], atol=1e-7)
    if "stress" in results:
        virial = -voigt_6_to_full_3x3_stress(results["stress"]) * atoms.get_volume()
        np.testing.assert_allclose(found.virial, virial, atol=1e-5)
    else:
        assert found.virial is None


@pytest.mark.parametrize("name", ["a.xyz", "a.extxyz", "a.xyz.gz", "a.traj", "a.db", "a.json"])
def test_formats(frames, read, tmp_path, name):
    path = tmp_path / name
    if path.suffix in (".db", ".json"):
        with ase.db.connect(path) as database:
            for atoms in frames:
                database.write(atoms)
    else:
        ase.io.write(path, frames)
    structures, source = read(path)
    for found, atoms in zip(structures, frames, strict=True):
        assert_same(found, atoms)
    assert [s.source_index for s in structures] == [0, 1]
    assert source.keys.found == {"energy": "energy", "forces": "forces", "stress": "stress"}
    assert source.files[0]["frames"] == 2
    assert source.warnings == []


def test_forces_of_constrained_atoms_stay_what_they_are(frames, read, tmp_path):
    frames[0].set_constraint(FixAtoms([0, 1, 2]))
    ase.io.write(tmp_path / "a.traj", frames)
    assert_same(read(tmp_path / "a.traj")[0][0], frames[0])


def custom(frames, energy, forces, **others):
    """The same frames with labels under other names."""
    out = []
    for atoms in frames:
        copy = atoms.copy()
        copy.info[energy] = atoms.calc.results["energy"]
        copy.arrays[forces] = atoms.calc.results["forces"]
        copy.info |= {key: value(atoms) for key, value in others.items() if atoms.pbc.any()}
        out.append(copy)
    return out


@pytest.mark.parametrize(
    ("energy", "forces"),
    [("energy_xtb", "forces_xtb"), ("REF_energy", "REF_forces"), ("Energy", "force"), ("TotEnergy", "Forces")],
)
def test_usual_other_names_are_found_and_reported(frames, read, tmp_path, energy, forces):
    ase.io.write(tmp_path / "a.xyz", custom(frames, energy, forces))
    structures, source = read(tmp_path / "a.xyz")
    assert source.keys.found == {"energy": energy, "forces": forces}
    assert structures[0].energy == pytest.approx(frames[0].calc.results["energy"], rel=1e-7)
    np.testing.assert_allclose(structures[1].forces, frames[1].calc.results["forces"], atol=1e-7)


def test_named_keys_win(frames, read, tmp_path):
    ase.io.write(tmp_path / "a.xyz", custom(frames, "corrected", "corrected_forces"))
    structures, source = read(tmp_path / "a.xyz", keys={"energy": "corrected", "forces": "corrected_forces"})
    assert source.keys.found == {"energy": "corrected", "forces": "corrected_forces"}
    assert structures[0].energy == pytest.approx(frames[0].calc.results["energy"], rel=1e-7)


def test_values_kept_in_a_database(frames, read, tmp_path):
    with ase.db.connect(tmp_path / "a.db") as database:
        for atoms in frames:
            results = atoms.calc.results
            atoms.calc = None
            database.write(atoms, dft_energy=results["energy"], data={"dft_forces": results["forces"]})
    structures, source = read(tmp_path / "a.db")
    assert source.keys.found == {"energy": "dft_energy", "forces": "dft_forces"}
    assert structures[1].forces.shape == (2, 3)


def test_an_lmdb_database(frames, read, tmp_path):
    pytest.importorskip("ase_db_backends")
    with ase.db.connect(tmp_path / "a.aselmdb") as database:
        for atoms in frames:
            database.write(atoms)
    structures, source = read(tmp_path / "a.aselmdb")
    for found, atoms in zip(structures, frames, strict=True):
        assert_same(found, atoms)
    assert source.files[0]["format"] == "db"


def test_an_lmdb_database_without_its_package(read, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ase_db_backends.aselmdb", None)
    (tmp_path / "a.aselmdb").write_bytes(b"anything")
    with pytest.raises(
        UserError, match=r"a\.aselmdb: reading it needs the package ase-db-backends; pip install ase-db"
    ):
        read(tmp_path / "a.aselmdb")


def test_other_lmdb_files_are_not_unpickled(read, tmp_path):
    (tmp_path / "a.lmdb").write_bytes(b"anything")
    with pytest.raises(UserError, match=r"a\.lmdb: an LMDB file of an unknown kind; rename it to \.aselmdb if ASE"):
        read(tmp_path / "a.lmdb")


def virial(atoms):
    return -voigt_6_to_full_3x3_stress(atoms.calc.results["stress"]) * atoms.get_volume()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("virial", virial),
        ("stress", lambda atoms: atoms.calc.results["stress"]),
        ("stress", lambda atoms: voigt_6_to_full_3x3_stress(atoms.calc.results["stress"])),
        ("my_stress", lambda atoms: voigt_6_to_full_3x3_stress(atoms.calc.results["stress"]).ravel()),
    ],
    ids=["virial", "6 numbers", "3 x 3", "9 numbers"],
)
def test_virials_and_stresses_of_every_shape_agree(frames, read, tmp_path, key, value):
    ase.io.write(tmp_path / "a.xyz", custom(frames, "energy_dft", "forces_dft", **{key: value}))
    keys = {"stress": key} if key.startswith("my") else {}
    (molecule, crystal), source = read(tmp_path / "a.xyz", keys=keys)
    np.testing.assert_allclose(crystal.virial, virial(frames[1]), rtol=1e-6, atol=1e-6)
    assert molecule.virial is None
    assert source.warnings == []


def test_expansion_lowers_the_energy_where_the_virial_is_positive(read, tmp_path):
    """virial = -dE/dstrain, by finite differences of a pair potential under uniform strain."""
    from ase.calculators.lj import LennardJones

    atoms = ase.Atoms("Ar2", [[0, 0, 0], [0.9, 0.1, 0]], cell=[3, 3.1, 3.2], pbc=True, calculator=LennardJones(rc=4))
    atoms.get_stress()
    ase.io.write(tmp_path / "a.xyz", atoms)
    (structure,), _ = read(tmp_path / "a.xyz")

    def energy(strain):
        strained = atoms.copy()
        strained.set_cell(atoms.cell @ (np.eye(3) + strain), scale_atoms=True)
        strained.calc = LennardJones(rc=4)
        return strained.get_potential_energy()

    step = 1e-5
    for i, j in [(0, 0), (1, 1), (0, 1)]:
        strain = np.zeros((3, 3))
        strain[i, j] += step / 2
        strain[j, i] += step / 2
        slope = (energy(strain) - energy(-strain)) / (2 * step)
        assert structure.virial[i, j] == pytest.approx(-slope, rel=1e-4, abs=1e-3)


def test_units_of_the_config(frames, read, tmp_path):
    ase.io.write(tmp_path / "a.xyz", frames)
    units = {"energy": "hartree", "length": "bohr", "stress": "GPa"}
    (_, crystal), _ = read(tmp_path / "a.xyz", units=units)
    results, hartree, bohr = frames[1].calc.results, 27.211386, 0.52917721
    np.testing.assert_allclose(crystal.positions, frames[1].positions * bohr, atol=1e-7)
    np.testing.assert_allclose(crystal.cell, frames[1].cell * bohr, atol=1e-7)
    assert crystal.energy == pytest.approx(results["energy"] * hartree, rel=1e-6)
    np.testing.assert_allclose(crystal.forces, results["forces"] * hartree / bohr, rtol=1e-6, atol=1e-6)
    stress = voigt_6_to_full_3x3_stress(results["stress"]) / GPA
    np.testing.assert_allclose(crystal.virial, -stress * frames[1].get_volume() * bohr**3, rtol=1e-6, atol=1e-6)


def test_stress_and_virial_that_contradict_each_other(frames, read, tmp_path):
    """The same numbers twice are one label; a stress of the other sign is not."""
    crystal, path = frames[1], tmp_path / "a.xyz"
    crystal.info["virial"] = -crystal.get_stress(voigt=False) * crystal.get_volume()
    ase.io.write(path, crystal)
    (structure,), _ = read(path)
    np.testing.assert_allclose(structure.virial, crystal.info["virial"], rtol=1e-6)
    crystal.info["virial"] *= -1
    ase.io.write(path, crystal)
    with pytest.raises(
        UserError, match=r"a.xyz, frame 0: virial and stress contradict each other \(xx is .*keys.stress"
    ):
        read(path)
    np.testing.assert_allclose(read(path, keys={"virial": "virial"})[0][0].virial, crystal.info["virial"], rtol=1e-6)


def test_stress_without_a_volume_is_left_out_and_said(frames, read, tmp_path):
    """On a molecule, and on a slab without a third cell vector."""
    frames[0].calc.results["stress"] = np.zeros(6)
    slab = frames[1].copy()
    slab.pbc, slab.cell[2] = (True, True, False), 0
    slab.calc = SinglePointCalculator(slab, **frames[1].calc.results)
    ase.io.write(tmp_path / "a.traj", [*frames, slab])
    (molecule, crystal, slab), source = read(tmp_path / "a.traj")
    assert molecule.virial is None is slab.virial
    assert crystal.virial is not None
    assert source.warnings == ["stress ignored on 2 frames that are not periodic or without volume"]


def test_frames_that_cannot_be_trained_on_are_rejected_with_a_reason(frames, read, tmp_path):
    isolated = ase.Atoms("O", info={"config_type": "IsolatedAtom", "energy": -400.0}, cell=[9, 9, 9], pbc=True)
    lone = ase.Atoms("H", info={"energy": -13.6})
    unlabelled = ase.Atoms("H2", [[0, 0, 0], [0, 0, 0.7]])
    ase.io.write(tmp_path / "a.xyz", [isolated, frames[0], lone, unlabelled, frames[1]])
    items, _ = read(tmp_path / "a.xyz")
    assert [getattr(item, "reason", None) for item in items] == [
        "isolated atom",
        None,
        "isolated atom",
        "no labels",
        None,
    ]
    assert [item.source_index for item in items] == [0, 1, 2, 3, 4]
    assert (items[3].frame, items[3].file) == (3, str(tmp_path / "a.xyz"))


def test_a_label_missing_on_some_frames_is_none_there(frames, read, tmp_path):
    del frames[0].calc.results["energy"]
    ase.io.write(tmp_path / "a.traj", frames)
    (molecule, crystal), _ = read(tmp_path / "a.traj")
    assert molecule.energy is None
    assert molecule.forces is not None
    assert crystal.energy is not None


def test_key_that_is_not_there(frames, read, tmp_path):
    ase.io.write(tmp_path / "a.xyz", custom(frames, "dft_energy", "dft_forces"))
    match = (
        r"a.xyz: no frame has keys.energy: 'dft_enrgy'; did you mean 'dft_energy'\? Keys there: dft_energy, dft_forces$"
    )
    with pytest.raises(UserError, match=match):
        read(tmp_path / "a.xyz", keys={"energy": "dft_enrgy"})


def test_no_labels_at_all(frames, read, tmp_path):
    ase.io.write(tmp_path / "a.xyz", custom(frames, "value", "vector"))
    with pytest.raises(
        UserError, match=r"a.xyz: no energies and no forces found; set keys.* Keys there: value, vector$"
    ):
        read(tmp_path / "a.xyz")


def test_two_possible_energies(frames, read, tmp_path):
    frames = custom(frames, "dft_energy", "dft_forces", xtb_energy=lambda atoms: 1.0)
    ase.io.write(tmp_path / "a.xyz", frames)
    with pytest.raises(
        UserError, match=r"frame 1: energy may be dft_energy or xtb_energy, which differ; say which by keys.energy"
    ):
        read(tmp_path / "a.xyz")


def test_forces_of_the_wrong_length(frames, read, tmp_path):
    molecule = frames[0].copy()
    molecule.info |= {"energy": 1.0, "my_forces": np.zeros(6)}
    ase.io.write(tmp_path / "a.xyz", molecule)
    with pytest.raises(UserError, match=r"frame 0: forces has shape \(6,\), expected \(3, 3\)"):
        read(tmp_path / "a.xyz", keys={"forces": "my_forces"})


def test_an_energy_that_is_no_number(frames, read, tmp_path):
    ase.io.write(tmp_path / "a.xyz", custom(frames, "dft_energy", "dft_forces"))
    text = (tmp_path / "a.xyz").read_text()
    (tmp_path / "a.xyz").write_text(text.replace("dft_energy=", "dft_energy=n/a was="))
    with pytest.raises(UserError, match="frame 0: energy is 'n/a'; expected numbers"):
        read(tmp_path / "a.xyz")


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_labels_that_are_not_finite_name_file_and_frame(frames, read, tmp_path, value):
    frames[1].calc.results["energy"] = float(value)
    ase.io.write(tmp_path / "a.xyz", frames)
    with pytest.raises(UserError, match=r"a.xyz, frame 1: energy NaN or infinite"):
        read(tmp_path / "a.xyz")


def test_a_file_cut_off_in_a_frame(frames, read, tmp_path):
    ase.io.write(tmp_path / "a.xyz", frames)
    lines = (tmp_path / "a.xyz").read_text().splitlines()
    (tmp_path / "a.xyz").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(UserError, match=r"a.xyz, frame \d: ASE cannot read it as extxyz: .*; repair it"):
        read(tmp_path / "a.xyz")


def test_a_file_of_no_known_format(read, tmp_path):
    (tmp_path / "a.abc").write_bytes(b"\x00\x01\x02 nothing")
    with pytest.raises(UserError, match=r"a.abc: of a format that ASE does not know; set `format`"):
        read(tmp_path / "a.abc")


def test_a_format_nobody_knows(frames, read, tmp_path):
    ase.io.write(tmp_path / "a.xyz", frames)
    with pytest.raises(UserError, match="format 'extxzy': unknown; did you mean 'extxyz'"):
        read(tmp_path / "a.xyz", format="extxzy")


def test_what_ase_warns_about_is_kept(shared_data, read):
    (structure,), source = read(shared_data / "qm_outputs/orca_sp_gradient.out")
    assert len(structure) == 22
    assert len(source.warnings) == 1
    assert "orca_sp_gradient.out: ASE: Geometry optimization did not converge!" in source.warnings[0]


def test_an_outcar_that_ase_cannot_read(shared_data, read):
    path = shared_data / "qm_outputs/vasp_Ti_aimd_nwrite0_OUTCAR"
    match = (
        "nwrite0_OUTCAR, frame 0: ASE cannot read it as vasp-out: Did not find .*; give the run's vasprun.xml instead"
    )
    with pytest.raises(UserError, match=match):
        read(path)


# Written by hand from the files: frames usable, atoms of the first and energy of the first (eV).
REAL = {
    "molecules/3bpa_train_300K.xyz": (500, 27, -17660.461737861464),
    "molecules/solvent_xtb_train_200.xyz": (200, None, None),
    "periodic/carbon_gap20_reduced_100.xyz": (100, 4, -632.106478),
    "periodic/uio66_mof_finetune_10.xyz": (10, 114, -842.56381112),
    "periodic/high_level_water_10.xyz": (10, 192, -30011.49340274),
    "periodic/mptrj_10.db": (10, None, None),
    "qm_outputs/vasp_Ti_aimd_vasprun.xml": (10, 32, None),
    "qm_outputs/qe_water64.out": (1, 192, None),
}


@pytest.mark.parametrize("file", REAL)
def test_real_files_agree_with_what_ase_reads(shared_data, read, file):
    n, atoms_of_first, energy = REAL[file]
    items, source = read(shared_data / file)
    structures = [item for item in items if not hasattr(item, "reason")]
    assert len(structures) == n
    assert len(structures[0]) == (atoms_of_first or len(structures[0]))
    assert energy is None or structures[0].energy == energy
    frames = ase.io.read(shared_data / file, ":")
    keys = source.keys.found
    for s in structures[:: max(1, n // 5)]:
        atoms = frames[s.source_index]
        values = {**atoms.info, **atoms.arrays, **(atoms.calc.results if atoms.calc else {})}
        assert s.energy == values[keys["energy"]]
        np.testing.assert_array_equal(s.forces, values[keys["forces"]])
        np.testing.assert_array_equal(s.positions, atoms.positions)


def test_a_real_virial_is_copied(shared_data, read):
    (first, *_), source = read(shared_data / "periodic/carbon_gap20_reduced_100.xyz")
    assert source.keys.found == {"energy": "energy", "forces": "force", "virial": "virial"}
    atoms = ase.io.read(shared_data / "periodic/carbon_gap20_reduced_100.xyz", 0)
    np.testing.assert_allclose(first.virial, atoms.info["virial"], atol=1e-6)
