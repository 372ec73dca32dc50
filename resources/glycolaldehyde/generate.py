"""Make glycolaldehyde_pbe.npz: DFT energies and forces along a molecular-dynamics run.

    pip install -r resources/requirements.txt
    python resources/glycolaldehyde/generate.py

1. Langevin dynamics of glycolaldehyde (HOCH2CHO) at 600 K with GFN2-xTB (tblite), 0.5 fs steps, one frame kept
   every 50 fs after 2 ps.
2. PBE/def2-SVP energies and forces of every frame with PySCF (density fitting, grid level 3, forces with the grid's
   response), 11 to 12 s of processor time per frame. Finished frames are kept in `frames/`, so an interrupted run
   continues.
3. One sGDML-style file: R (Å), z, E (kcal/mol), F (kcal/mol/Å).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import numpy as np
from ase import Atoms, units
from ase.md.langevin import Langevin
from ase.md.velocitydistribution import MaxwellBoltzmannDistribution
from pyscf import dft, gto, lib
from rdkit import Chem
from rdkit.Chem import AllChem
from tblite.ase import TBLite

HERE = Path(__file__).parent
FRAMES = HERE / "frames"
N_FRAMES = 400
TEMPERATURE_K = 600.0
HARTREE_TO_KCAL_MOL = 627.5094740631
BOHR_TO_ANGSTROM = 0.529177210903


def molecule() -> Atoms:
    mol = Chem.AddHs(Chem.MolFromSmiles("OCC=O"))
    AllChem.EmbedMolecule(mol, randomSeed=7)
    AllChem.MMFFOptimizeMolecule(mol)
    return Atoms([atom.GetSymbol() for atom in mol.GetAtoms()], mol.GetConformer().GetPositions())


def trajectory() -> np.ndarray:
    """Positions (N_FRAMES, atoms, 3) in Å."""
    atoms = molecule()
    atoms.calc = TBLite(method="GFN2-xTB", verbosity=0)
    rng = np.random.default_rng(20261129)
    MaxwellBoltzmannDistribution(atoms, temperature_K=TEMPERATURE_K, rng=rng)
    md = Langevin(atoms, 0.5 * units.fs, temperature_K=TEMPERATURE_K, friction=0.01 / units.fs, rng=rng)
    md.run(4000)
    frames = []
    for _ in range(N_FRAMES):
        md.run(100)
        frames.append(atoms.get_positions())
    return np.array(frames)


def pbe(numbers: np.ndarray, positions: np.ndarray, density: np.ndarray | None):
    """Energy (hartree), forces (hartree/bohr) and density matrix of one frame."""
    mol = gto.M(atom=list(zip(numbers.tolist(), positions.tolist(), strict=True)), basis="def2-svp", verbose=0)
    calculation = dft.RKS(mol, xc="pbe").density_fit()
    calculation.conv_tol = 1e-9
    energy = calculation.kernel(dm0=density)
    if not calculation.converged:
        raise RuntimeError("the SCF did not converge")
    gradient = calculation.nuc_grad_method()
    gradient.grid_response = True
    return energy, -gradient.kernel(), calculation.make_rdm1()


def main() -> None:
    lib.num_threads(int(os.environ["OMP_NUM_THREADS"]))
    FRAMES.mkdir(exist_ok=True)
    path = FRAMES / "positions.npy"
    if not path.exists():
        np.save(path, trajectory())
    positions, numbers, density = np.load(path), molecule().numbers, None
    for i, frame in enumerate(positions):
        result = FRAMES / f"{i:04d}.npz"
        if not result.exists():
            energy, forces, density = pbe(numbers, frame, density)
            np.savez(result, energy=energy, forces=forces)
            print(f"frame {i + 1} of {len(positions)}: {energy:.6f} hartree", flush=True)
    collect(numbers, positions)


def collect(numbers: np.ndarray, positions: np.ndarray) -> None:
    results = [np.load(FRAMES / f"{i:04d}.npz") for i in range(len(positions))]
    energies = np.array([r["energy"] for r in results]) * HARTREE_TO_KCAL_MOL
    forces = np.array([r["forces"] for r in results]) * (HARTREE_TO_KCAL_MOL / BOHR_TO_ANGSTROM)
    np.savez_compressed(
        HERE / "glycolaldehyde_pbe.npz",
        R=positions,
        z=numbers.astype(np.uint8),
        E=energies[:, None],
        F=forces,
        name="glycolaldehyde",
        theory="PBE/def2-SVP (PySCF, density fitting); frames from 600 K GFN2-xTB dynamics",
        r_unit="Ang",
        e_unit="kcal/mol",
    )


if __name__ == "__main__":
    main()
