from dataclasses import replace

import numpy as np
import pytest
import torch
from ase.data import covalent_radii

from forgefield.errors import UserError
from forgefield.models.mace import torch_parity
from forgefield.models.mace.torch_exchange import from_torch
from forgefield.models.mace.torch_parity import check_parity, checked_directory, checked_pickle
from forgefield.models.mace.torch_reference import exact_forces, reference
from forgefield.models.samples import sample_structures


@pytest.fixture(scope="module")
def repulsive(build_mace):
    return build_mace(
        dtype=torch.float64, num_interactions=1, max_ell=1, pair_repulsion=True, distance_transform="Agnesi"
    )


def test_the_samples_hold_every_element_and_every_kind_of_surroundings():
    elements = tuple(range(1, 31))
    structures = sample_structures(elements)
    assert {int(z) for s in structures for z in s.numbers} == set(elements)
    close = [
        np.linalg.norm(s.positions[i] - s.positions[j]) < covalent_radii[s.numbers[[i, j]]].sum()
        for s in structures
        for i in range(len(s))
        for j in range(i)
    ]
    assert any(close)
    assert any(len(s) == 1 for s in structures)
    cells = [s for s in structures if s.pbc.all()]
    assert min(np.linalg.norm(s.cell, axis=1).max() for s in cells) < 3.5
    assert any(np.linalg.det(s.cell) < 0 for s in cells)
    assert {1, 2} <= {int(s.pbc.sum()) for s in structures if s.volume > 0}


def test_a_model_with_repulsion_agrees_and_the_check_sees_every_constant(repulsive):
    potential = from_torch(repulsive)
    report = check_parity("here", potential, repulsive)
    assert 0 < max(report["relative_differences"].values()) < 1e-11
    for name in ("pair_repulsion_fn.a_exp", "radial_embedding.distance_transform.q"):
        buffers = dict(potential.buffers) | {name: potential.buffers[name] * (1 + 1e-7)}
        with pytest.raises(UserError, match=r"here: the imported model differs from mace-torch's in its \w+ by"):
            check_parity("here", replace(potential, buffers=buffers), repulsive)


def test_one_head_of_several_agrees_with_the_whole_model(build_mace, save_mace, tmp_path):
    module = build_mace(
        num_interactions=1,
        heads=["dft", "ccsd"],
        atomic_energies=np.arange(6.0).reshape(2, 3),
        atomic_inter_scale=[0.8, 1.2],
        atomic_inter_shift=[0.1, 0.2],
    )
    path = save_mace(module, tmp_path / "two.model")
    potential, report = checked_pickle("x", path, "ccsd")
    assert (potential.config["scale"], report["mace_torch_model"]) == (np.float32(1.2), "as pickled")
    with pytest.raises(UserError, match=r"models\.x \(two\.model\): this mace-torch model has 2 heads \(dft, ccsd\)"):
        checked_pickle("x", path, None)
    assert potential.source["mace_torch"]["head"] == "ccsd"
    assert checked_directory("x", tmp_path / "ccsd", potential, "ccsd")["check"].startswith("mace-torch")
    with pytest.raises(UserError, match=r"models\.x\.head is 'dft', but .* has a single head; remove the key"):
        checked_directory("x", tmp_path / "ccsd", potential, "dft")


def test_a_pickle_that_mace_torch_cannot_run_is_compared_as_rebuilt(build_mace, save_mace, tmp_path):
    module = build_mace(num_interactions=1)
    del module.spherical_harmonics
    _, report = checked_pickle("x", save_mace(module, tmp_path / "x.model"), None)
    assert report["mace_torch_model"].startswith("rebuilt from its arrays, for the pickled one does not run (Attr")


def test_chebyshev_functions_get_the_derivative_that_torch_leaves_out(build_mace, structures):
    module = build_mace(dtype=torch.float64, num_interactions=1, radial_type="chebyshev", num_bessel=8)
    structure = structures[0]
    moved = [structure.positions + h * np.eye(len(structure))[0][:, None] * [1.0, 0.0, 0.0] for h in (1e-5, -1e-5)]
    plus, minus = (reference(module, replace(structure, positions=p)).energy for p in moved)
    slope = (minus - plus) / 2e-5
    before = reference(module, structure)
    assert abs(before.forces[0, 0] - slope) > 1e-3
    after = reference(exact_forces(module), structure)
    assert after.energy == pytest.approx(before.energy, rel=1e-12)
    assert after.forces[0, 0] == pytest.approx(slope, rel=1e-6)


def test_a_model_that_gives_no_numbers_fails(repulsive, monkeypatch):
    potential = from_torch(repulsive)
    name = "readouts.0.linear.weight"
    lost = replace(potential, parameters=dict(potential.parameters) | {name: potential.parameters[name] * np.nan})
    with pytest.raises(UserError, match="here: on sample structures: frame 0: the model gives energy NaN or infinite"):
        check_parity("here", lost, repulsive)


@pytest.mark.parametrize(("quantity", "frame"), [("energy", 0), ("energy", 8), ("forces", 3), ("virial", 6)])
def test_a_reference_that_gives_no_numbers_fails(repulsive, monkeypatch, quantity, frame):
    """In the first structure as in a later one: NaN is neither larger nor smaller than what came before."""

    def lost(module, structure, head):
        result = reference(module, structure, head)
        if structure.source_index != frame:
            return result
        return result._replace(**{quantity: getattr(result, quantity) * np.nan})

    monkeypatch.setattr(torch_parity, "reference", lost)
    with pytest.raises(UserError, match=rf"differs from mace-torch's in its {quantity} by nan"):
        check_parity("here", from_torch(repulsive), repulsive)


def test_slabs_and_wires_are_compared(repulsive, monkeypatch):
    """A virial that is wrong only where some directions are open does not pass."""

    def wrong(module, structure, head):
        result = reference(module, structure, head)
        open_directions = 0 < structure.pbc.sum() < 3
        return result._replace(virial=result.virial * (1 + 1e-9)) if open_directions else result

    monkeypatch.setattr(torch_parity, "reference", wrong)
    with pytest.raises(UserError, match=r"differs from mace-torch's in its virial by 1\.0e-09"):
        check_parity("here", from_torch(repulsive), repulsive)
