from dataclasses import replace

import numpy as np
import pytest
import torch

from forgefield.errors import UserError
from forgefield.models.inference import predict
from forgefield.models.mace.invariants import coupling_tensor
from forgefield.models.mace.torch_exchange import from_torch, to_torch
from forgefield.models.mace.torch_reference import load_pickle, quiet_mace, reference


@pytest.fixture(scope="module")
def build():
    """A function that builds a small mace-torch model; keywords override its arguments."""

    def make(cls: str = "ScaleShiftMACE", **changes):
        with quiet_mace():
            from e3nn import o3
            from mace import modules

            arguments = {
                "r_max": 3.0,
                "num_bessel": 4,
                "num_polynomial_cutoff": 5,
                "max_ell": 2,
                "interaction_cls": modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
                "interaction_cls_first": modules.interaction_classes["RealAgnosticInteractionBlock"],
                "num_interactions": 2,
                "num_elements": 3,
                "hidden_irreps": o3.Irreps("4x0e"),
                "MLP_irreps": o3.Irreps("5x0e"),
                "atomic_energies": np.array([-1.0, -2.0, -3.0]),
                "avg_num_neighbors": 6.5,
                "atomic_numbers": [1, 6, 8],
                "correlation": 2,
                "gate": torch.nn.functional.silu,
                "use_reduced_cg": False,
                "radial_MLP": [8, 8],
            }
            if cls == "ScaleShiftMACE":
                arguments |= {"atomic_inter_scale": 0.8, "atomic_inter_shift": -0.1}
            irreps = {k: o3.Irreps(v) for k, v in changes.items() if k.endswith("irreps")}
            blocks = {k: modules.interaction_classes[v] for k, v in changes.items() if k.startswith("interaction_cls")}
            return getattr(modules, cls)(**(arguments | changes | irreps | blocks))

    return make


@pytest.mark.parametrize("cls", ["MACE", "ScaleShiftMACE"])
def test_a_model_returns_with_the_same_bits(build, cls):
    module = build(cls, correlation=3)
    state = module.state_dict()
    again = to_torch(from_torch(module), torch.float32).state_dict()
    assert set(state) == {name for name in again if cls == "ScaleShiftMACE" or not name.startswith("scale_shift")}
    assert all(torch.equal(state[name], again[name]) for name in state)


@pytest.mark.parametrize("name", ["mace_spice2022", "mace_solvent_xtb", "mace_solvent_xtb_small"])
def test_a_public_model_returns_with_the_same_bits(shared_data, name):
    module = load_pickle(shared_data / "models" / f"{name}.model")
    potential = from_torch(module)
    again = from_torch(to_torch(potential, module.r_max.dtype))
    assert (again.config, again.energy_shifts) == (potential.config, potential.energy_shifts)
    for key in ("parameters", "buffers"):
        for tensor, expected in getattr(potential, key).items():
            np.testing.assert_array_equal(getattr(again, key)[tensor], expected, err_msg=tensor, strict=True)


def test_plain_mace_has_no_scale_and_shift(build):
    config = from_torch(build("MACE")).config
    assert (config["scale"], config["shift"]) == (1.0, 0.0)


def test_energy_shifts_follow_the_elements(build):
    assert from_torch(build()).energy_shifts == {1: -1.0, 6: -2.0, 8: -3.0}


def test_another_basis_of_the_couplings_goes_along_with_its_weights(make_potential, structures):
    """A basis that holds every path twice, with half the weights, is the same function."""
    potential = make_potential(correlation=(2, 2))
    names = [f"products.{i}.symmetric_contractions.contractions.0." for i in (0, 1)]
    doubled = np.concatenate([coupling_tensor(2, 2)] * 2, axis=-1)
    halved = {n + "weights_max": np.tile(potential.parameters[n + "weights_max"] / 2, (1, 2, 1)) for n in names}
    wide = replace(
        potential,
        buffers=potential.buffers | {n + "U_matrix_2": doubled for n in names},
        parameters=potential.parameters | halved,
    )
    module = to_torch(wide, torch.float64)
    np.testing.assert_array_equal(from_torch(module).buffers[names[0] + "U_matrix_2"], doubled)
    expected = reference(to_torch(potential, torch.float64), structures[0])
    np.testing.assert_allclose(reference(module, structures[0]).forces, expected.forces, atol=1e-12)
    ours = next(predict(wide, structures[:1]))
    np.testing.assert_allclose(ours.forces, expected.forces, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden_irreps": "4x0e+4x1o"}, r"hidden features are 4x0e\+4x1o"),
        ({"interaction_cls": "RealAgnosticDensityResidualInteractionBlock"}, "RealAgnosticDensityResidual"),
        ({"heads": ["dft", "ccsd"], "atomic_energies": np.zeros((2, 3))}, r"2 heads \(dft, ccsd\)"),
        ({"pair_repulsion": True}, "pair_repulsion"),
        ({"distance_transform": "Agnesi"}, "AgnesiTransform"),
        ({"radial_type": "gaussian"}, "GaussianBasis"),
        ({"use_agnostic_product": True}, "use_agnostic_product"),
        ({"gate": torch.tanh}, "activation of its last readout"),
        ({"apply_cutoff": False}, "apply_cutoff"),
        ({"use_last_readout_only": True}, "use_last_readout_only"),
    ],
)
def test_a_model_with_a_part_unknown_here_is_refused_by_name(build, changes, named):
    if "heads" in changes:
        changes = changes | {"atomic_inter_scale": [1.0, 1.0], "atomic_inter_shift": [0.0, 0.0]}
    with pytest.raises(UserError, match=named):
        from_torch(build(**changes))


def test_another_class_is_refused_by_name(build):
    module = build()
    module.__class__ = type("PolarMACE", (type(module),), {})
    with pytest.raises(UserError, match="its class is PolarMACE"):
        from_torch(module)


def test_an_unknown_parameter_is_refused_by_name(build):
    module = build()
    module.readouts[0].bias = torch.nn.Parameter(torch.ones(1))
    with pytest.raises(UserError, match=r"parameter readouts\.0\.bias has shape \(1,\), expected None"):
        from_torch(module)
