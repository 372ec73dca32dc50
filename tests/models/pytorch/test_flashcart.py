from dataclasses import replace

import numpy as np
import pytest
import torch
from ase import Atoms
from flashcart.data.graph import graph_from_ase
from flashcart.model.flashcart import FlashCartPotential

from forgefield.data.neighbors import neighbor_pairs
from forgefield.models.flashcart.checkpoint import reference
from forgefield.models.flashcart.exchange import from_flashcart
from forgefield.models.inference import predict
from forgefield.models.pytorch.building import default_dtype
from forgefield.models.pytorch.flashcart import FlashcartModel
from forgefield.models.pytorch.graphs import torch_graph

VARIANTS = {
    "default": {},
    "elements": {"element_agnostic_interaction": False, "element_agnostic_product": False},
    "plain": {"correlation": 1, "nonlinearity": False, "layer_norm": False, "l_max_hidden_feats": 2},
    "reduced": {"path_reduced_product": True, "radial_mapping": "cosine", "gate_activation": "sigmoid", "r_min": 0.5},
    "recomputed": {"recompute_radial": True, "n_interactions": 1},
}


@pytest.fixture(scope="module")
def models(save_flashcart, tmp_path_factory):
    """A function that gives a variant as the package loads it in float64, and as a potential without shifts."""

    def make(variant="default"):
        path = save_flashcart(tmp_path_factory.mktemp("flashcart") / variant, **VARIANTS[variant])
        with default_dtype(torch.float64):
            module = FlashCartPotential.from_checkpoint(path).double()
        module.recompute_radial = VARIANTS[variant].get("recompute_radial", False)
        potential = from_flashcart(module, pretrained=True, source={})
        return module, replace(potential, energy_shifts=dict.fromkeys(potential.elements, 0.0))

    return make


def graph_of(potential, structures, dtype=np.float64):
    return torch_graph(structures, [neighbor_pairs(s, potential.cutoff) for s in structures], potential.elements, dtype)


@pytest.mark.parametrize("variant", VARIANTS)
def test_results_are_those_of_the_package_in_any_batch(models, structures, variant):
    module, potential = models(variant)
    virials = 0
    for structure, found in zip(structures, predict(potential, structures, wanted="virial"), strict=True):
        expected = reference(module, structure)
        if expected is None:
            continue
        assert found.energy == pytest.approx(expected.energy, rel=1e-10, abs=1e-10)
        np.testing.assert_allclose(found.forces, expected.forces, atol=1e-10 * max(1, np.abs(expected.forces).max()))
        if expected.virial is not None:
            scale = max(1, np.abs(expected.virial).max())
            np.testing.assert_allclose(-found.stress * structure.volume, expected.virial, atol=1e-10 * scale)
            virials += 1
    assert virials == 3


def test_the_package_errs_where_this_does_not(models, structures):
    """Once this fails, the package has been mended, and the adapter can be simpler."""
    module, potential = models()
    left_handed = structures[1]
    assert np.linalg.det(left_handed.cell) < 0
    with default_dtype(torch.float64):
        cell = {"cell": left_handed.cell, "pbc": left_handed.pbc}
        graph = graph_from_ase(Atoms(left_handed.numbers, left_handed.positions, **cell), module.elements, 3.0)
        stress = module.predict(graph, compute_stress=True)["stress"][0, 0]
        alone = graph_from_ase(Atoms("H"), module.elements, 3.0)
        with pytest.raises(RuntimeError, match="reshape"):
            module.predict(alone, compute_forces=True)
    (found,) = predict(potential, [left_handed], wanted="virial")
    assert found.stress[0, 0] == pytest.approx(-float(stress.detach()), rel=1e-10)


def test_forces_and_virials_are_derivatives_of_the_energy(models, structures):
    _, potential = models()
    structure, step = structures[1], 1e-5
    (found,) = predict(potential, [structure], wanted="virial")

    def slope(change):
        up, down = (next(predict(potential, [change(sign * step)])).energy for sign in (1, -1))
        return (up - down) / (2 * step)

    def moved(h):
        positions = structure.positions.copy()
        positions[2, 1] += h
        return replace(structure, positions=positions)

    def strained(h):
        strain = np.eye(3) + h / 2 * np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]])
        return replace(structure, positions=structure.positions @ strain, cell=structure.cell @ strain)

    assert -slope(moved) == pytest.approx(found.forces[2, 1], rel=1e-6, abs=1e-7)
    assert slope(strained) / structure.volume == pytest.approx(found.stress[1, 2], rel=1e-6, abs=1e-7)


def test_rotations_mirrors_translations_and_permutations(models, structures):
    _, potential = models()
    generator = np.random.default_rng(2)
    before = list(predict(potential, structures, wanted="virial"))
    for sign in (1, -1):
        turn = np.linalg.qr(generator.normal(size=(3, 3)))[0]
        turn *= sign * np.sign(np.linalg.det(turn))
        orders = [generator.permutation(len(s)) for s in structures]
        changed = [
            replace(s, numbers=s.numbers[o], positions=(s.positions @ turn.T)[o] + 7.0, cell=s.cell @ turn.T)
            for s, o in zip(structures, orders, strict=True)
        ]
        for one, other, order in zip(before, predict(potential, changed, wanted="virial"), orders, strict=True):
            assert other.energy == pytest.approx(one.energy, rel=1e-10)
            np.testing.assert_allclose(other.forces, (one.forces @ turn.T)[order], atol=1e-9)
            if one.stress is not None:
                np.testing.assert_allclose(other.stress, turn @ one.stress @ turn.T, atol=1e-9)


def test_atoms_without_neighbors_have_their_energy_alone_and_beside_others(models, structures):
    _, potential = models()
    apart = structures[3:5]
    graph = graph_of(potential, apart)
    assert not len(graph.sender)
    together = list(predict(potential, structures))[3:5]
    for one, other in zip(predict(potential, apart), together, strict=True):
        assert one.energy == pytest.approx(other.energy, rel=1e-12)
        assert not one.forces.any()
        assert abs(one.energy) > 1e-3


@pytest.mark.parametrize("which", [slice(3, 5), slice(None)], ids=["no edges", "all"])
def test_a_loss_has_a_finite_gradient_by_every_parameter(models, structures, which):
    _, potential = models()
    model = FlashcartModel(potential, torch.float64).train()
    predicted = model(graph_of(potential, structures[which]), virial=True)
    loss = predicted.energy.square().sum() + predicted.forces.square().sum() + predicted.virial.square().sum()
    parameters = model.potential_parameters()
    assert list(parameters) == list(potential.parameters)
    gradients = torch.autograd.grad(loss, list(parameters.values()), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert sum(bool(gradient.any()) for gradient in gradients) > (len(gradients) * 0.9 if which == slice(None) else 3)


def test_constants_are_as_precise_as_the_model_whatever_the_default_precision(models, structures):
    _, potential = models()
    fine = list(predict(potential, structures[:3]))
    with default_dtype(torch.float64):
        again = list(predict(potential, structures[:3]))
    coarse = list(predict(potential, structures[:3], precision="float32"))
    for one, other, third in zip(fine, again, coarse, strict=True):
        assert one.energy == other.energy
        assert 0 < abs(one.energy - third.energy) < 1e-4 * max(1, abs(one.energy))


@pytest.mark.parametrize("hook", ["non_muon_parameters", "non_decayable_parameters"])
def test_what_the_package_keeps_out_of_muon_and_of_decay_is_kept_out_here(models, hook):
    module, potential = models()
    model = FlashcartModel(potential, torch.float64)
    kept_out = [
        {name for name, parameter in network.named_parameters() if any(parameter is p for p in out)}
        for network, out in (
            (module, list(getattr(module, hook)())),
            (model.network, list(getattr(model, hook)())),
        )
    ]
    assert kept_out[0] == kept_out[1]
    assert any(name.startswith("embedding.") for name in kept_out[1])
