"""Every public sample beside the repository, from its file to the store.

The numbers were read from the files by ASE, h5py and NumPy, outside of forgefield, and written here by hand.
"""

import shutil

import numpy as np
import pytest

from forgefield.config.dataset import DatasetConfig
from forgefield.data.convert import convert_dataset
from forgefield.data.sources import Source, find_files
from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.files import sha256_of

KCAL = {"energy": "kcal/mol", "length": "angstrom"}
MOL = 4184 / 96485.33212331  # eV in a kcal/mol, by the Faraday constant
EV = {"energy": "eV", "length": "angstrom"}

# units, format, usable frames, frames left out, atoms of the first usable one, its energy (eV) and its first force
# component (eV/Å); None is no forces.
SAMPLES = {
    "npz/md17_ethanol_2000.npz": (KCAL, "npz", 2000, 0, 9, -97208.40600498 * MOL, 1.45172974 * MOL),
    "md22/md22_Ac-Ala3-NHMe_5frames.xyz": (KCAL, "extxyz", 5, 0, 42, -620726.002662 * MOL, 1.07102 * MOL),
    "md22/buckyball_catcher_148atoms.xyz": ({}, "extxyz", 1, 0, 148, -508.546661, None),
    "molecules/3bpa_train_300K.xyz": ({}, "extxyz", 500, 0, 27, -17660.461737861464, 0.17092934),
    "molecules/ethanol_ccsdt_reduced_100_kcal.xyz": (
        KCAL,
        "extxyz",
        100,
        0,
        9,
        -97079.92222178938 * MOL,
        -32.31755688687498 * MOL,
    ),
    "molecules/solvent_xtb_train_200.xyz": ({}, "extxyz", 200, 3, 24, -1602.093208085042, 3.62106606),
    "periodic/carbon_gap20_reduced_100.xyz": ({}, "extxyz", 100, 0, 4, -632.106478, 1.84408021),
    "periodic/high_level_water_10.xyz": ({}, "extxyz", 10, 0, 192, -30011.49340274, -1.64291447),
    "periodic/mptrj_10.db": ({}, "db", 10, 0, 10, -73.4299391, 1.937e-05),
    "periodic/uio66_mof_finetune_10.xyz": ({}, "extxyz", 10, 0, 114, -842.56381112, -0.57499382),
    "qm_outputs/orca_sp_gradient.out": ({}, "orca-output", 1, 0, 22, -13962.526498774383, -0.29714848),
    "qm_outputs/qe_water64.out": ({}, "espresso-out", 1, 0, 192, -30007.649477605355, -0.43809772),
    "qm_outputs/vasp_Ti_aimd_vasprun.xml": ({}, "vasp-xml", 10, 0, 32, -253.13334953, 0.00012569),
    "qm_outputs/vasp_ch4_unconverged_OUTCAR": ({}, "vasp-out", 1, 2, 5, -23.9510773, 0.03336),
    "hdf5/aimnet2_bynatoms_195.h5": (EV, "hdf5", 195, 0, 7, -19071.980832897276, 0.821774),
    "hdf5/spice2_2conf.hdf5": (EV, "hdf5", 2, 0, 13, -33533.58818835873, -1.13442217),
    "deepmd/water_0": ({}, "deepmd", 80, 0, 192, -29943.90625, 0.6219969),
}

REFUSED = {
    "npz/rmd17_benzene_10.npz": (KCAL, r"coords has shape \(10, 12, 3\) and nuclear_charges \(10,\); expected"),
    "npz/md17_ethanol_2000.npz": (
        {},
        r"md17_ethanol_2000.npz: the file does not state its units; set units\.energy, such as kcal/mol",
    ),
    "hdf5/spice2_2conf.hdf5": (
        {},
        r"spice2_2conf.hdf5: the file does not state its units; set units\.energy, such as kcal/mol",
    ),
    "qm_outputs/vasp_Ti_aimd_nwrite0_OUTCAR": (
        {},
        r"nwrite0_OUTCAR, frame 0: ASE cannot read it as vasp-out: Did not find .* parse; give the run's vasprun.xml "
        "instead, or set `format: dpdata:vasp/outcar`",
    ),
    "models/mace_spice2022.model": ({}, r"mace_spice2022\.model: of a format that ASE does not know; set `format`"),
}


def read(path, units):
    source = Source(DatasetConfig(source=str(path), units=units), find_files(path))
    items = list(source)
    usable = [item for item in items if not hasattr(item, "reason")]
    return source, usable, len(items) - len(usable)


@pytest.mark.parametrize("file", SAMPLES)
def test_samples_are_read(shared_data, file):
    units, form, n_usable, n_rejected, n_atoms, energy, force = SAMPLES[file]
    source, usable, rejected = read(shared_data / file, units)
    assert source.files[0]["format"] == form
    assert (len(usable), rejected, len(usable[0])) == (n_usable, n_rejected, n_atoms)
    assert usable[0].energy == pytest.approx(energy, rel=1e-9)
    if force is None:
        assert usable[0].forces is None
    else:
        assert usable[0].forces[0, 0] == pytest.approx(force, rel=1e-6)


@pytest.mark.parametrize("file", [file for file, expected in SAMPLES.items() if expected[2] >= 5])
def test_samples_are_converted(shared_data, tmp_path, file):
    units, _, n_usable, n_rejected, n_atoms, energy, force = SAMPLES[file]
    config = DatasetConfig(source=str(shared_data / file), units=units, split={"train": 2, "valid": 2, "test": 0.2})
    report = convert_dataset("sample", config, tmp_path / "out")
    assert report["frames"]["usable"] == n_usable
    assert len(report["rejected"]) == n_rejected
    with Store(tmp_path / "out" / "train.h5") as store:
        (first,) = store.read([0])
    assert len(first) == n_atoms
    assert first.energy == pytest.approx(energy, rel=1e-9)
    assert first.forces[0, 0] == pytest.approx(force, rel=1e-6)


@pytest.mark.parametrize("file", REFUSED)
def test_samples_that_are_refused(shared_data, file):
    units, match = REFUSED[file]
    with pytest.raises(UserError, match=match):
        read(shared_data / file, units)


def test_no_sample_is_forgotten(shared_data):
    known = {*SAMPLES, *REFUSED, "SOURCES.md", "molecules/3bpa_iso_atoms.xyz"}
    files = [str(p.relative_to(shared_data)) for p in shared_data.rglob("*") if p.is_file()]
    others = [f for f in files if not any(f == k or f.startswith(f"{k}/") for k in known)]
    assert [f for f in others if not f.startswith("models/")] == []


def test_isolated_atoms_alone_are_no_dataset(shared_data, tmp_path):
    config = DatasetConfig(source=str(shared_data / "molecules/3bpa_iso_atoms.xyz"))
    with pytest.raises(UserError, match=r"no usable frame: all 4 are left out \(4 isolated atom\)"):
        convert_dataset("atoms", config, tmp_path / "out")


def test_frames_that_did_not_converge_are_named_and_can_be_kept(shared_data):
    path = shared_data / "qm_outputs/vasp_ch4_unconverged_OUTCAR"
    items = list(Source(DatasetConfig(source=str(path)), [path]))
    reason = "not converged: 15 electronic steps, NELM is 15"
    assert [getattr(item, "reason", None) for item in items] == [reason, reason, None]
    kept = list(Source(DatasetConfig(source=str(path), keep_unconverged=True), [path]))
    assert [structure.energy for structure in kept[:1]] == [-23.97682807]
    assert len(kept) == 3


def test_the_folder_of_a_system_is_hashed_by_its_content(shared_data, tmp_path):
    shutil.copytree(shared_data / "deepmd/water_0", tmp_path / "a")
    before = sha256_of(tmp_path / "a")
    assert before == sha256_of(shared_data / "deepmd/water_0")
    energies = np.load(tmp_path / "a/set.000/energy.npy")
    (tmp_path / "a/set.000/energy.npy").chmod(0o644)
    np.save(tmp_path / "a/set.000/energy.npy", energies + 1)
    assert sha256_of(tmp_path / "a") != before
