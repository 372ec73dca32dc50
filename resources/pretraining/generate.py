"""Make gfn2_hcno.xyz.xz: GFN2-xTB energies and forces of many small molecules of H, C, N and O.

    pip install -r resources/requirements.txt
    python resources/pretraining/generate.py

For every line of molecules.smi, four conformers (RDKit) are relaxed a little and each is run for 110 fs of Langevin
dynamics with GFN2-xTB (tblite) at its own temperature; one frame is kept every 20 fs after the first 30 fs. A line
with a dot is a pair of molecules: it starts from the best of 24 random contacts and runs cooler. Frames that fell
apart or have a force above 15 eV/Å are left out. Molecules of validation and test are drawn by a seed and written
last, so that a split by blocks keeps each molecule on one side. It took 48 minutes on cores that other work shared.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from ase import Atoms, units
from ase.calculators.calculator import CalculationFailed
from ase.calculators.singlepoint import SinglePointCalculator
from ase.io import write
from ase.md.langevin import Langevin
from ase.md.velocitydistribution import thermalize_momenta
from ase.neighborlist import natural_cutoffs, neighbor_list
from ase.optimize import BFGS
from rdkit import Chem
from rdkit.Chem import AllChem
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from tblite.ase import TBLite

HERE = Path(__file__).parent
SEED = 20261129
TEMPERATURES_K = (300.0, 500.0, 800.0, 1200.0)
PAIR_TEMPERATURES_K = (200.0, 300.0, 450.0, 600.0)
FRAMES_PER_RUN, FIRST_STEPS, STEPS_BETWEEN, STEP_FS = 4, 30, 20, 1.0
CONTACT_A, MAX_GAP_A, MAX_FORCE = 1.9, 4.5, 15.0
N_VALID, N_TEST = 14, 15


def main() -> None:
    entries = [line.split() for line in (HERE / "molecules.smi").read_text().splitlines()]
    frames = {}
    for i, (smiles, name) in enumerate(entries):
        frames[name] = list(sample(smiles, name, np.random.default_rng([SEED, i])))
        print(f"{i + 1} of {len(entries)}: {name}, {len(frames[name])} frames", flush=True)
    rng = np.random.default_rng(SEED)
    groups = split(entries, rng)
    blocks = [[frame for name in group for frame in frames[name]] for group in groups]
    for block in blocks:
        rng.shuffle(block)
    write(HERE / "gfn2_hcno.xyz.xz", [frame for block in blocks for frame in block], format="extxyz")
    print("frames in the blocks train, valid, test:", *map(len, blocks))


def split(entries: list[list[str]], rng: np.random.Generator) -> list[list[str]]:
    """Names of the train, valid and test blocks; the smallest molecules always train."""
    names = [name for _, name in entries]
    larger = [name for smiles, name in entries if Chem.MolFromSmiles(smiles).GetNumHeavyAtoms() >= 3]
    held_out = [str(name) for name in rng.permutation(larger)[: N_VALID + N_TEST]]
    return [[n for n in names if n not in held_out], held_out[:N_VALID], held_out[N_VALID:]]


def sample(smiles: str, name: str, rng: np.random.Generator) -> Iterator[Atoms]:
    """Labelled frames of one molecule or pair."""
    parts = smiles.split(".")
    temperatures = TEMPERATURES_K if len(parts) == 1 else PAIR_TEMPERATURES_K
    conformers = [embed(part, len(temperatures), int(rng.integers(2**31))) for part in parts]
    for temperature, start in zip(temperatures, zip(*conformers, strict=True), strict=True):
        atoms = start[0] if len(start) == 1 else contact(*start, rng)
        try:
            for frame in dynamics(atoms, temperature, rng):
                if is_whole(frame, [len(part) for part in start]) and np.abs(frame.get_forces()).max() < MAX_FORCE:
                    frame.info["molecule"] = name
                    yield frame
        except CalculationFailed as error:
            print(f"{name}, {temperature:g} K: {error}", flush=True)


def embed(smiles: str, n: int, seed: int) -> list[Atoms]:
    """n conformers, after a force field has relaxed them where it knows the molecule."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    ids = list(AllChem.EmbedMultipleConfs(mol, n, randomSeed=seed))
    if AllChem.MMFFHasAllMoleculeParams(mol):
        AllChem.MMFFOptimizeMoleculeConfs(mol)
    symbols = [atom.GetSymbol() for atom in mol.GetAtoms()]
    return [Atoms(symbols, mol.GetConformer(i).GetPositions()) for i in ids]


def contact(first: Atoms, second: Atoms, rng: np.random.Generator) -> Atoms:
    """The pair of lowest energy among 24 random orientations, with the nearest atoms CONTACT_A apart."""
    candidates = []
    for _ in range(24):
        moved = second.copy()
        moved.positions -= moved.positions.mean(0)
        axis, direction = rng.normal(size=(2, 3))
        moved.rotate(rng.uniform(0, 360), axis)
        direction /= np.linalg.norm(direction)
        origin = first.positions.mean(0)
        reach = np.arange(0.0, 12.0, 0.05)
        gaps = [gap(first.positions, moved.positions + origin + r * direction) for r in reach]
        too_close = np.flatnonzero(np.array(gaps) < CONTACT_A)
        moved.positions += origin + reach[too_close[-1] + 1] * direction
        candidates.append(first + moved)
    return min(candidates, key=lambda atoms: labelled(atoms).get_potential_energy())


def dynamics(atoms: Atoms, temperature: float, rng: np.random.Generator) -> Iterator[Atoms]:
    atoms.calc = TBLite(method="GFN2-xTB", verbosity=0)
    BFGS(atoms, logfile=None).run(fmax=0.3, steps=20)
    # at a minimum half of the kinetic energy flows into the potential energy: start with twice the temperature
    thermalize_momenta(atoms, temperature_K=2 * temperature, rng=rng)
    friction = 0.01 / units.fs
    md = Langevin(atoms, STEP_FS * units.fs, temperature_K=temperature, friction=friction, rng=rng, fixcm=False)
    md.run(FIRST_STEPS)
    for _ in range(FRAMES_PER_RUN):
        md.run(STEPS_BETWEEN)
        yield labelled(atoms)


def labelled(atoms: Atoms) -> Atoms:
    """A centred copy with tightly converged energy and forces of exactly the rounded positions."""
    frame = Atoms(atoms.numbers, np.round(atoms.positions - atoms.positions.mean(0), 5))
    frame.calc = TBLite(method="GFN2-xTB", accuracy=0.01, verbosity=0)
    energy, forces = frame.get_potential_energy(), frame.get_forces()
    frame.calc = SinglePointCalculator(frame, energy=round(energy, 6), forces=np.round(forces, 4))
    return frame


def is_whole(frame: Atoms, sizes: list[int]) -> bool:
    """Whether each molecule of the frame is in one piece, and those of a pair are near each other."""
    i, j = neighbor_list("ij", frame, natural_cutoffs(frame, mult=1.5))
    graph = coo_matrix((np.ones(len(i)), (i, j)), shape=(len(frame), len(frame)))
    pieces = connected_components(graph, directed=False)[0]
    near = len(sizes) == 1 or gap(frame.positions[: sizes[0]], frame.positions[sizes[0] :]) < MAX_GAP_A
    return pieces <= len(sizes) and near


def gap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a[:, None] - b[None], axis=-1).min())


if __name__ == "__main__":
    main()
