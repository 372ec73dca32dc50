"""Make nanotube_gfn2.npz: GFN2-xTB energies and forces of a double-walled carbon nanotube of 370 atoms.

    pip install -r resources/requirements.txt
    python resources/nanotube/generate.py

1. A (3,3) tube of 17 layers inside an (8,8) tube of 14, the open ends capped with hydrogen: C326H44.
2. RELAXATION_STEPS steps of BFGS with GFN2-xTB (tblite), from the geometry of rolled graphite.
3. Random displacements, drawn as if the atoms were joined by springs at one of TEMPERATURES_K. No dynamics.
4. Energy and forces of each, into one file in the layout and units of MD22: R (Å), z, E (kcal/mol), F (kcal/mol/Å).

Finished frames are kept in `frames/`, so an interrupted run continues.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import numpy as np
from ase import Atoms, units
from ase.build import nanotube
from ase.neighborlist import neighbor_list
from ase.optimize import BFGS
from tblite.ase import TBLite

HERE = Path(__file__).parent
FRAMES = HERE / "frames"
SEED = 20261130
TUBES = ((8, 14), (3, 17))
BOND_A, SECOND_NEIGHBOR_A, CH_A = 1.65, 2.65, 1.09
RELAXATION_STEPS = 20
TEMPERATURES_K = (150.0, 300.0, 450.0, 600.0)
N_FRAMES = 24
# springs (eV/Å²): of bonds, of second neighbors, of an atom to the middle of its neighbors, and to where it was
BOND, SECOND, MIDDLE, PLACE = 30.0, 6.0, 15.0, 0.3
KCAL_MOL = units.kcal / units.mol


def main() -> None:
    FRAMES.mkdir(exist_ok=True)
    path = FRAMES / "relaxed.npy"
    atoms = tube(*TUBES[0]) + tube(*TUBES[1])
    if not path.exists():
        relax(atoms)
        np.save(path, atoms.positions)
    atoms.positions = np.load(path)
    frames = displaced(atoms)
    for i, positions in enumerate(frames):
        file = FRAMES / f"{i:02d}.npz"
        if not file.exists():
            energy, forces = label(atoms.numbers, positions)
            np.savez(file, energy=energy, forces=forces)
            print(f"frame {i + 1} of {N_FRAMES}: {energy:.4f} eV", flush=True)
    collect(atoms.numbers, frames)


def tube(n: int, layers: int) -> Atoms:
    """An (n,n) tube of so many layers of 2n carbon atoms, with a hydrogen at each atom that has two neighbors."""
    cells = (layers + 1) // 2
    carbon = nanotube(n, n, length=cells)
    step = carbon.cell[2, 2] / (2 * cells)
    layer = np.round(carbon.positions[:, 2] / step).astype(int) % (2 * cells)
    carbon.positions[:, 2] = layer * step
    positions = carbon.positions[layer < layers] - carbon.positions[layer < layers].mean(0)
    carbon = Atoms(f"C{len(positions)}", positions)
    i, vectors = neighbor_list("iD", carbon, BOND_A)
    ends = [k for k in range(len(carbon)) if (i == k).sum() == 2]
    outward = np.array([-(vectors[i == k] / np.linalg.norm(vectors[i == k], axis=1)[:, None]).sum(0) for k in ends])
    return carbon + Atoms(f"H{len(ends)}", positions[ends] + CH_A * outward / np.linalg.norm(outward, axis=1)[:, None])


def relax(atoms: Atoms) -> None:
    atoms.calc = TBLite(method="GFN2-xTB", verbosity=0)
    BFGS(atoms).run(fmax=0.05, steps=RELAXATION_STEPS)
    atoms.calc = None


def displaced(atoms: Atoms) -> np.ndarray:
    """Positions (N_FRAMES, atoms, 3) in Å, with the temperatures taken in turn."""
    stiffness, modes = np.linalg.eigh(hessian(atoms))
    rng = np.random.default_rng(SEED)
    frames = []
    for i in range(N_FRAMES):
        kt = units.kB * TEMPERATURES_K[i % len(TEMPERATURES_K)]
        shift = modes @ (np.sqrt(kt / stiffness) * rng.normal(size=len(stiffness)))
        frames.append(atoms.positions + shift.reshape(-1, 3))
    return np.round(frames, 6)


def hessian(atoms: Atoms) -> np.ndarray:
    """Second derivatives of the springs' energy, (3 atoms, 3 atoms) in eV/Å²."""
    n = len(atoms)
    blocks = np.zeros((n, n, 3, 3))
    for i, j, distance, vector in zip(*neighbor_list("ijdD", atoms, SECOND_NEIGHBOR_A), strict=True):
        along = (BOND if distance < BOND_A else SECOND) * np.outer(vector, vector) / distance**2
        blocks[i, i] += along
        blocks[i, j] -= along
    bonded = np.zeros((n, n))
    bonded[tuple(neighbor_list("ij", atoms, BOND_A))] = 1.0
    from_middle = np.eye(n) - bonded / bonded.sum(1, keepdims=True)
    blocks += (MIDDLE * from_middle.T @ from_middle + PLACE * np.eye(n))[:, :, None, None] * np.eye(3)
    return blocks.transpose(0, 2, 1, 3).reshape(3 * n, 3 * n)


def label(numbers: np.ndarray, positions: np.ndarray) -> tuple[float, np.ndarray]:
    """Energy (eV) and forces (eV/Å)."""
    atoms = Atoms(numbers, positions, calculator=TBLite(method="GFN2-xTB", accuracy=0.01, verbosity=0))
    return atoms.get_potential_energy(), atoms.get_forces()


def collect(numbers: np.ndarray, positions: np.ndarray) -> None:
    results = [np.load(FRAMES / f"{i:02d}.npz") for i in range(N_FRAMES)]
    np.savez_compressed(
        HERE / "nanotube_gfn2.npz",
        R=positions,
        z=numbers.astype(np.uint8),
        E=np.array([[r["energy"]] for r in results]) / KCAL_MOL,
        F=np.array([r["forces"] for r in results]) / KCAL_MOL,
        name="double-walled nanotube C326H44",
        theory="GFN2-xTB (tblite); random displacements of a roughly relaxed geometry",
        r_unit="Ang",
        e_unit="kcal/mol",
    )


if __name__ == "__main__":
    main()
