"""Public foundation models, with their real weights, against mace-torch."""

import ase.io
import numpy as np
import pytest
from comparison import by_jax, differences, gradient_by_jax, gradient_by_mace_torch, gradient_difference

from forgefield.data.structures import Structure
from forgefield.models.mace.torch_exchange import from_torch
from forgefield.models.mace.torch_reference import load_pickle

TOLERANCE, FLOAT32_FORCES = 1e-10, 1e-4
FRAMES = {
    "molecules/solvent_xtb_train_200.xyz": (10, 50, 90, 130, 170),
    "molecules/3bpa_train_300K.xyz": (0, 250),
    "molecules/ethanol_ccsdt_reduced_100_kcal.xyz": (0, 50),
}


@pytest.fixture(scope="module")
def real(shared_data) -> list[Structure]:
    """Frames of simulations: clusters of solvent molecules and two molecules at room temperature."""
    frames = [ase.io.read(shared_data / path, i) for path, chosen in FRAMES.items() for i in chosen]
    return [Structure(a.numbers, a.positions, source_index=i) for i, a in enumerate(frames)]


@pytest.mark.parametrize("name", ["mace_spice2022", "mace_solvent_xtb", "mace_solvent_xtb_small"])
def test_public_model(shared_data, structures, real, name, record_property):
    module = load_pickle(shared_data / "models" / f"{name}.model")
    potential = from_torch(module)
    plausible = [s for s in real if set(s.numbers) <= set(potential.elements)]
    both = [*structures, *plausible]
    found, gradient = gradient_by_jax(potential, both)
    expected, expected_gradient = gradient_by_mace_torch(module, both)
    relative = differences(found, expected) | {"gradient": gradient_difference(gradient, expected_gradient)}
    record_property("relative differences", relative)
    assert max(relative.values()) < TOLERANCE, relative
    single = by_jax(potential, plausible, "float32").forces
    largest = max(np.abs(a - b).max() for a, b in zip(single, expected.forces[len(structures) :], strict=True))
    record_property("largest difference of forces in float32, eV/Å", float(largest))
    assert largest < FLOAT32_FORCES
