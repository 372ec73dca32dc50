"""From files in any units, through stores in any units, back to eV and Å."""

import ase
import ase.io
import numpy as np
import pytest
from ase.calculators.singlepoint import SinglePointCalculator

from forgefield.config.dataset import DatasetConfig
from forgefield.config.units import PRESETS
from forgefield.data.convert import convert_dataset
from forgefield.data.store import Store
from forgefield.units import Units


def frames_in(units):
    """Ten crystals, as they should be read and as a file has them; their energies are those of all electrons."""
    random, factors, meant, written = np.random.default_rng(0), Units().factors(units), [], []
    for _ in range(10):
        atoms = ase.Atoms("OCaO", 1.7 * np.eye(3) + random.normal(0, 0.1, (3, 3)), cell=np.eye(3) * 6 + 0.3, pbc=True)
        results = {"energy": -22000 + random.normal(), "forces": random.normal(size=(3, 3)), "stress": np.eye(3) * 0.01}
        meant.append((atoms, results))
        other = atoms.copy()
        other.set_cell(atoms.cell * factors.length, scale_atoms=True)
        kinds = {"energy": factors.energy, "forces": factors.forces, "stress": factors.stress}
        other.calc = SinglePointCalculator(other, **{kind: results[kind] * kinds[kind] for kind in kinds})
        written.append(other)
    return meant, written


@pytest.mark.parametrize("store", [{"energy": "kJ/mol", "length": "nm"}, {"energy": "Ry", "length": "bohr"}], ids=str)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_set_of_units(tmp_path, preset, store):
    meant, written = frames_in(PRESETS[preset])
    ase.io.write(tmp_path / "a.traj", written)
    config = DatasetConfig(source=str(tmp_path / "a.traj"), units=preset, store={"units": store})
    report = convert_dataset("a", config, tmp_path / "out")
    assert report["warnings"] == []
    for part in ("train", "valid", "test"):
        with Store(tmp_path / f"out/{part}.h5") as file:
            for found in file.read(slice(None)):
                atoms, results = meant[found.source_index]
                assert found.energy == pytest.approx(results["energy"], rel=1e-12, abs=0)
                np.testing.assert_allclose(found.forces, results["forces"], rtol=1e-10, atol=0)
                np.testing.assert_allclose(found.positions, atoms.positions, rtol=1e-12, atol=1e-14)
                np.testing.assert_allclose(found.virial, -results["stress"] * atoms.get_volume(), rtol=1e-10, atol=0)
