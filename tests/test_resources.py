"""The data that the default run uses are what their READMEs say."""

import lzma
import re
from collections import Counter
from io import StringIO
from itertools import pairwise

import ase.io
import numpy as np
import pytest
import yaml
from ase import Atoms
from ase.neighborlist import natural_cutoffs, neighbor_list
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

MAX_BYTES = 8_000_000
# per eV
KCAL_MOL = 23.060548


@pytest.fixture(scope="module")
def resources(root):
    return root / "resources"


@pytest.fixture(scope="module")
def molecules(resources) -> dict[str, str]:
    """SMILES by name."""
    lines = (resources / "pretraining" / "molecules.smi").read_text().splitlines()
    return {name: smiles for smiles, name in map(str.split, lines)}


@pytest.fixture(scope="module")
def pretraining(resources) -> list[Atoms]:
    # as a whole, because ASE seeks in its files and each seek in a compressed one reads it from the beginning
    with lzma.open(resources / "pretraining" / "gfn2_hcno.xyz.xz", "rt") as file:
        return ase.io.read(StringIO(file.read()), ":", format="extxyz")


@pytest.fixture(scope="module")
def glycolaldehyde(resources):
    path = resources / "glycolaldehyde" / "glycolaldehyde_pbe.npz"
    if not path.exists():
        pytest.skip("glycolaldehyde_pbe.npz is not here; resources/glycolaldehyde/generate.py makes it")
    with np.load(path) as file:
        return dict(file)


@pytest.fixture(scope="module")
def nanotube(resources):
    with np.load(resources / "nanotube" / "nanotube_gfn2.npz") as file:
        return dict(file)


def test_all_files_together_are_small(resources):
    files = [f for f in resources.rglob("*") if f.is_file() and not {"frames", "__pycache__"} & set(f.parts)]
    assert sum(f.stat().st_size for f in files) < MAX_BYTES


def test_requirements_are_exact_pins(resources):
    lines = (resources / "requirements.txt").read_text().split()
    assert {line.split("==")[0] for line in lines} >= {"pyscf", "tblite", "rdkit"}
    assert all(re.fullmatch(r"[a-z]+==[0-9.]+", line) for line in lines)


def test_readmes_state_the_counts_of_the_pretraining_set(resources, molecules, pretraining):
    pairs = sum("." in smiles for smiles in molecules.values())
    readme = (resources / "pretraining" / "README.md").read_text()
    assert f"{len(pretraining)} structures of\n{len(molecules) - pairs} molecules" in readme
    assert f"{pairs} pairs of molecules" in readme
    assert f"{len(pretraining)} structures of {len(molecules)} molecules" in (resources / "README.md").read_text()


def test_pretraining_frames_are_molecules_of_the_list(molecules, pretraining):
    formulas = {}
    for atoms in pretraining:
        assert set(atoms.get_chemical_symbols()) <= set("HCNO")
        assert not atoms.pbc.any()
        assert formulas.setdefault(atoms.info["molecule"], str(atoms.symbols)) == str(atoms.symbols)
    assert formulas.keys() == molecules.keys()


def test_pretraining_labels_have_the_magnitude_of_ev_and_no_net_force(pretraining):
    for atoms in pretraining:
        forces = atoms.get_forces()
        assert np.abs(forces).max() < 15.0
        # rounding leaves 5e-5 eV/Å for each atom
        assert np.abs(forces.sum(0)).max() < 2e-3
        assert np.abs(np.cross(atoms.positions, forces).sum(0)).max() < 5e-3
        # a GFN2-xTB energy counts valence electrons only: a hydrogen about -13 eV, the others -60 to -115 eV
        heavy = (atoms.numbers > 1).sum()
        assert -120.0 < (atoms.get_potential_energy() + 13.0 * (len(atoms) - heavy)) / max(heavy, 1) < 5.0


def test_blocks_of_the_pretraining_split_share_no_molecule(root, pretraining):
    split = yaml.safe_load((root / "config" / "pretrain.yaml").read_text())["datasets"]["pretraining"]["split"]
    assert split["method"] == "blocks"
    edges = np.cumsum([0, split["train"], split["valid"], split["test"]])
    assert edges[-1] == len(pretraining)
    blocks = [{atoms.info["molecule"] for atoms in pretraining[a:b]} for a, b in pairwise(edges)]
    assert sum(map(len, blocks)) == len(set.union(*blocks))


def test_glycolaldehyde_is_not_in_the_pretraining_set(molecules, pretraining):
    parts = {part for smiles in molecules.values() for part in smiles.split(".")}
    assert not parts & {"OCC=O", "O=CCO", "C(O)C=O", "C(=O)CO"}
    isomers = [atoms for atoms in pretraining if atoms.get_chemical_formula() == "C2H4O2"]
    assert isomers
    assert not any(is_glycolaldehyde(atoms) for atoms in isomers)


def is_glycolaldehyde(atoms: Atoms) -> bool:
    """Of the stable C2H4O2 isomers only glycolaldehyde and its enol have a C-C bond and one O on each carbon."""
    i, j = neighbor_list("ij", atoms, natural_cutoffs(atoms, mult=1.25))
    bonds = Counter((int(a), atoms.symbols[b]) for a, b in zip(i, j, strict=True))
    carbons = [a for a in range(len(atoms)) if atoms.symbols[a] == "C"]
    return all(bonds[a, "C"] == 1 and bonds[a, "O"] == 1 for a in carbons)


def test_glycolaldehyde_is_recognized_in_its_own_set(glycolaldehyde):
    assert all(is_glycolaldehyde(Atoms(glycolaldehyde["z"], frame)) for frame in glycolaldehyde["R"])


def test_glycolaldehyde_file_has_the_stated_keys_shapes_and_units(glycolaldehyde):
    n = len(glycolaldehyde["R"])
    assert n >= 400
    assert sorted(glycolaldehyde["z"]) == [1, 1, 1, 1, 6, 6, 8, 8]
    assert glycolaldehyde["R"].shape == glycolaldehyde["F"].shape == (n, 8, 3)
    assert glycolaldehyde["E"].shape == (n, 1)
    assert (str(glycolaldehyde["r_unit"]), str(glycolaldehyde["e_unit"])) == ("Ang", "kcal/mol")
    assert "PBE/def2-SVP" in str(glycolaldehyde["theory"])
    np.testing.assert_allclose(glycolaldehyde["E"] / 627.5094740631, -228.57, atol=0.05)


def test_glycolaldehyde_forces_belong_to_the_positions(glycolaldehyde):
    np.testing.assert_allclose(glycolaldehyde["F"].sum(1), 0.0, atol=0.05)
    np.testing.assert_allclose(np.cross(glycolaldehyde["R"], glycolaldehyde["F"]).sum(1), 0.0, atol=0.2)


def test_nanotube_file_has_the_stated_keys_shapes_and_units(resources, nanotube):
    n = len(nanotube["R"])
    readme = (resources / "nanotube" / "README.md").read_text()
    assert f"holds {n} structures" in readme
    assert all(f"| ({n}, {shape}) |" in readme for shape in ("370, 3", "1"))
    assert nanotube["R"].shape == nanotube["F"].shape == (n, 370, 3)
    assert nanotube["E"].shape == (n, 1)
    assert Counter(nanotube["z"].tolist()) == {6: 326, 1: 44}
    assert (str(nanotube["r_unit"]), str(nanotube["e_unit"])) == ("Ang", "kcal/mol")
    assert (resources / "nanotube" / "nanotube_gfn2.npz").stat().st_size < 500_000


def test_nanotube_frames_are_two_capped_tubes(nanotube):
    for positions in nanotube["R"]:
        atoms = Atoms(nanotube["z"], positions)
        i, j = neighbor_list("ij", atoms, natural_cutoffs(atoms, mult=1.25))
        np.testing.assert_array_equal(np.bincount(i), np.where(atoms.numbers == 6, 3, 1))
        graph = coo_matrix((np.ones(len(i)), (i, j)), shape=(370, 370))
        assert sorted(np.bincount(connected_components(graph, directed=False)[1])) == [17 * 6 + 12, 14 * 16 + 32]


def test_nanotube_labels_are_those_of_displaced_structures(nanotube):
    forces, energies = nanotube["F"] / KCAL_MOL, nanotube["E"][:, 0] / KCAL_MOL
    np.testing.assert_allclose(forces.sum(1), 0.0, atol=1e-4)
    np.testing.assert_allclose(np.cross(nanotube["R"], forces).sum(1), 0.0, atol=1e-3)
    # the four temperatures in turn, in eV above the relaxed geometry and eV/Å
    by_temperature = (energies + 19654.06).reshape(-1, 4).mean(0)
    np.testing.assert_allclose(by_temperature, [5, 10, 15, 20], atol=0.5)
    np.testing.assert_allclose(forces.reshape(-1, 4, 1110).std((0, 2)), [0.6, 0.9, 1.1, 1.2], atol=0.05)


def test_the_split_of_the_nanotube_takes_all_frames_with_all_temperatures_in_each_part(root, nanotube):
    split = yaml.safe_load((root / "config" / "md22_nanotube.yaml").read_text())["datasets"]["nanotube"]["split"]
    assert split["train"] + split["valid"] + split["test"] == len(nanotube["R"])
    assert not any(split[part] % 4 for part in ("train", "valid", "test"))


def test_gfn2_labels_can_be_computed_again(pretraining):
    tblite = pytest.importorskip("tblite.ase", reason="tblite is not installed (resources/requirements.txt)")
    for atoms in pretraining[::1000]:
        again = Atoms(atoms.numbers, atoms.positions)
        again.calc = tblite.TBLite(method="GFN2-xTB", accuracy=0.01, verbosity=0)
        assert again.get_potential_energy() == pytest.approx(atoms.get_potential_energy(), abs=1e-5)
        np.testing.assert_allclose(again.get_forces(), atoms.get_forces(), atol=2e-4)
