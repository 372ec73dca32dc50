import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from forgefield.errors import UserError
from forgefield.models.mace.torch_exchange import from_torch, to_torch
from forgefield.models.mace.torch_pickle import read_pickle
from forgefield.models.mace.torch_record import Record
from forgefield.models.mace.torch_reference import load_pickle, quiet_mace, reference

ATTENTION = "RealAgnosticAttResidualInteractionBlock"
DENSITY = ("RealAgnosticDensityInteractionBlock", "RealAgnosticDensityResidualInteractionBlock")
NONLINEAR = "RealAgnosticResidualNonLinearInteractionBlock"
SMALL = {"max_ell": 1, "hidden_irreps": "4x0e+4x1o"}
FUZZED = {
    "density": SMALL
    | {"interaction_cls_first": DENSITY[0], "interaction_cls": DENSITY[1], "distance_transform": "Agnesi"}
    | {"pair_repulsion": True, "radial_type": "gaussian"},
    "nonlinear": SMALL | {"interaction_cls_first": NONLINEAR, "interaction_cls": NONLINEAR},
}
"""Models that together have a part of every kind."""


def assert_same_potential(found, expected):
    for key in ("config", "energy_shifts", "cutoff", "source"):
        assert getattr(found, key) == getattr(expected, key)
    for key in ("parameters", "buffers"):
        arrays = getattr(found, key)
        assert arrays.keys() == getattr(expected, key).keys()
        for name, array in getattr(expected, key).items():
            np.testing.assert_array_equal(arrays[name], array, err_msg=name, strict=True)


def assert_same_state(found, expected):
    found, expected = found.state_dict(), expected.state_dict()
    assert found.keys() == expected.keys()
    assert [n for n, t in expected.items() if found[n].dtype != t.dtype or not torch.equal(found[n], t)] == []


def test_every_variant_returns_as_the_same_function_with_the_same_bits(
    build_mace, save_mace, variant, structures, tmp_path
):
    """mace-torch -> potential -> mace-torch -> potential, and the same potential from the pickle that is not run."""
    dtype = torch.float64 if "hidden_irreps" in variant else torch.float32
    module = build_mace(dtype=dtype, **variant)
    with torch.no_grad():  # no parameter keeps a value that a new module would have as well
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter))
    potential = from_torch(module)
    again = to_torch(potential, dtype, plain=True)
    assert_same_state(again, module)
    assert type(again) is type(module)
    assert_same_potential(from_torch(again), potential)
    assert_same_potential(from_torch(read_pickle(save_mace(module, tmp_path / "x.model"))), potential)
    found, expected = (reference(m.double(), structures[1]).forces for m in (again, module))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["mace_spice2022", "mace_solvent_xtb", "mace_solvent_xtb_small"])
def test_a_public_model_returns_with_the_same_bits(shared_data, name):
    path = shared_data / "models" / f"{name}.model"
    module = load_pickle(path)
    potential = from_torch(module)
    assert_same_potential(from_torch(to_torch(potential, module.r_max.dtype)), potential)
    assert_same_potential(from_torch(read_pickle(path)), potential)


def test_energy_shifts_follow_the_elements(build_mace):
    assert from_torch(build_mace()).energy_shifts == {1: -1.0, 6: -2.0, 8: -3.0}


def test_shifts_that_single_precision_would_round_stay_exact(build_mace):
    potential = replace(from_torch(build_mace()), energy_shifts={1: -13.6, 6: -1029.123456789, 8: -2042.0})
    again = from_torch(to_torch(potential, torch.float32))
    assert again.energy_shifts == potential.energy_shifts
    assert {p.dtype for p in again.parameters.values()} == {np.dtype("float32")}


def test_plain_mace_has_no_scale_and_shift(build_mace):
    potential = from_torch(build_mace("MACE"))
    assert (potential.config["scale"], potential.config["shift"]) == (1.0, 0.0)
    scaled = replace(potential, config=potential.config | {"scale": 2.0})
    assert float(to_torch(scaled, torch.float32, plain=True).scale_shift.scale) == 2.0


def test_another_basis_of_the_couplings_goes_along_with_its_weights(build_mace, structures):
    """A basis that holds every path twice, with half the weights, is the same function."""
    module = build_mace(dtype=torch.float64)
    potential = from_torch(module)
    names = [f"products.{i}.symmetric_contractions.contractions.0." for i in (0, 1)]
    doubled = {n + "U_matrix_2": np.concatenate([potential.buffers[n + "U_matrix_2"]] * 2, axis=-1) for n in names}
    halved = {n + "weights_max": np.tile(potential.parameters[n + "weights_max"] / 2, (1, 2, 1)) for n in names}
    wide = replace(potential, buffers=potential.buffers | doubled, parameters=potential.parameters | halved)
    again = to_torch(wide, torch.float64)
    assert_same_potential(from_torch(again), wide)
    expected = reference(module, structures[0])
    np.testing.assert_allclose(reference(again, structures[0]).forces, expected.forces, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden_irreps": "4x0e+2x1o"}, r"hidden features are 4x0e\+2x1o"),
        ({"hidden_irreps": "4x0e+4x1e"}, r"hidden features are 4x0e\+4x1e"),
        ({"edge_irreps": "4x0e+2x1o"}, r"neighbors send 4x0e\+2x1o"),
        ({"use_so3": True, "num_interactions": 1}, "use_so3"),
        ({"max_ell": 5, "correlation": 1, "num_interactions": 1}, "reach degree 5, expected at most 4"),
        ({"max_ell": 1, "hidden_irreps": "4x0e+4x1o+4x2e"}, "features reach degree 2, but its harmonics only 1"),
        ({"correlation": 5, "max_ell": 1, "num_interactions": 1}, "correlation is 5, expected at most 4"),
        ({"gate": torch.sigmoid}, "activation of readout 1 is sigmoid"),
        (
            {"embedding_specs": {"spin": {"type": "categorical", "per": "graph", "emb_dim": 2, "num_classes": 2}}},
            "joint_e",
        ),
    ],
)
def test_a_model_with_a_part_unknown_here_is_refused_by_name(build_mace, changes, named):
    with pytest.raises(UserError, match=named) as caught:
        from_torch(build_mace(**changes))
    assert "\n" not in str(caught.value)


def test_another_class_is_refused_by_name(build_mace):
    module = build_mace(num_interactions=1)
    module.__class__ = type("PolarMACE", (type(module),), {})
    with pytest.raises(UserError, match="its class is PolarMACE"):
        from_torch(module)


def test_another_block_is_refused_by_name(build_mace):
    module = build_mace(num_interactions=1)
    block = module.interactions[0]
    block.__class__ = type("TransformerBlock", (type(block),), {})
    with pytest.raises(UserError, match="interaction block is TransformerBlock"):
        from_torch(module)


def test_another_readout_is_refused_by_name(build_mace):
    module = build_mace(num_interactions=1)
    module.readouts[0].__class__ = type("LinearDipoleReadoutBlock", (type(module.readouts[0]),), {})
    with pytest.raises(UserError, match="readout 0 is LinearDipoleReadoutBlock, expected LinearReadoutBlock"):
        from_torch(module)


def test_lora_and_accelerated_modules_name_the_way_back(build_mace):
    from mace.modules.lora import inject_lora
    from mace.modules.wrapper_ops import CuEquivarianceConfig

    module = build_mace(num_interactions=1)
    module.products[0].cueq_config = CuEquivarianceConfig()
    module.products[0].cueq_config.enabled = True
    with pytest.raises(UserError, match="convert it back with mace_cueq_to_e3nn"):
        from_torch(module)
    with quiet_mace():
        inject_lora(module)
    with pytest.raises(UserError, match=r"merge them with mace\.modules\.lora\.merge_lora_weights"):
        from_torch(module)


def test_trainable_distances_are_refused_by_name(build_mace):
    from mace.modules.radial import AgnesiTransform, ZBLBasis

    module = build_mace(num_interactions=1)
    module.pair_repulsion_fn = ZBLBasis(trainable=True)
    with pytest.raises(UserError, match="its pair repulsion is trainable"):
        from_torch(module)
    module.radial_embedding.distance_transform = AgnesiTransform(trainable=True)
    with pytest.raises(UserError, match="its radial basis is trainable"):
        from_torch(module)


def test_layers_with_different_averages_are_refused(build_mace):
    module = build_mace()
    module.interactions[1].avg_num_neighbors = 7.0
    with pytest.raises(UserError, match=r"its layers differ in avg_num_neighbors \(6\.5, 7\.0\)"):
        from_torch(module)


def test_an_unknown_parameter_is_refused_by_name(build_mace):
    module = build_mace(num_interactions=1)
    module.readouts[0].bias = torch.nn.Parameter(torch.ones(1))
    with pytest.raises(UserError, match=r"parameter readouts\.0\.bias is unknown to models of these settings"):
        from_torch(module)


def test_half_precision_is_refused_by_name(build_mace):
    with pytest.raises(UserError, match="its weights are float16, expected float32 or float64"):
        from_torch(build_mace(num_interactions=1).half())


def test_later_layers_that_differ_have_no_module(build_mace):
    potential = from_torch(build_mace(num_interactions=3, max_ell=1, correlation=1))
    config = potential.config | {"interactions": [*potential.config["interactions"][:2], ATTENTION]}
    with pytest.raises(UserError, match="no model whose later layers differ"):
        to_torch(replace(potential, config=config), torch.float32)


def places(record, path="", seen=None):
    """Every place of a record that holds something: the dictionary, its key, and the path in words."""
    seen = set() if seen is None else seen
    if not isinstance(record, Record) or id(record) in seen:
        return
    seen.add(id(record))
    for key, value in record.state.items():
        if key in ("_parameters", "_buffers", "_modules"):
            for name, member in (value or {}).items():
                yield value, name, f"{path}.{name}"
                yield from places(member, f"{path}.{name}", seen)
        elif "hook" not in key:
            yield record.state, key, f"{path}.{key}"


def refusal(record):
    """Why a record cannot be imported, or None if it can."""
    try:
        from_torch(record)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", FUZZED)
@pytest.mark.parametrize("replaced", [None, "nonsense"])
def test_a_file_that_lacks_any_part_is_refused_in_one_line(build_mace, save_mace, tmp_path, name, replaced):
    """Each attribute, buffer and parameter in turn is left out, or holds something else."""
    record = read_pickle(save_mace(build_mace(**FUZZED[name]), tmp_path / "x.model"))
    refused = set()
    for held, key, path in list(places(record)):
        before = dict(held)
        if replaced:
            held[key] = replaced
        else:
            del held[key]
        if message := refusal(record):
            assert re.fullmatch("this mace-torch model .*", message)
            refused.add(path)
        held.clear()
        held.update(before)
    assert {".r_max", ".scale_shift", ".radial_embedding.cutoff_fn", ".interactions.1.linear_up.weight"} <= refused


def test_a_missing_part_is_named(build_mace):
    module = build_mace(num_interactions=1)
    del module.radial_embedding.cutoff_fn
    with pytest.raises(UserError, match=r"cannot be imported: .* no attribute 'cutoff_fn'.*; save it again with mace"):
        from_torch(module)


def test_a_missing_part_of_a_pickle_is_named(build_mace, save_mace, tmp_path):
    module = build_mace(num_interactions=1)
    contraction = module.products[0].symmetric_contractions.contractions[0]
    contraction.register_buffer("U_1", contraction.U_matrix_1)
    del contraction.U_matrix_1
    record = read_pickle(save_mace(module, tmp_path / "x.model"))
    expected = "it has no U_matrix_1 (class Contraction); save it again with mace-torch 0.3.16"
    with pytest.raises(UserError, match=re.escape(expected)):
        from_torch(record)


def test_weights_that_are_no_numbers_are_named(build_mace):
    module = build_mace(num_interactions=1)
    module.interactions[0].linear_up.weight.data[0] = float("nan")
    with pytest.raises(UserError, match=r"parameter interactions\.0\.linear_up\.weight is NaN or infinite"):
        from_torch(module)
    module = build_mace(num_interactions=1)
    module.scale_shift.scale.fill_(float("inf"))
    with pytest.raises(UserError, match=r"cannot be imported: scale: expected a finite number"):
        from_torch(module)


def test_cutoffs_that_disagree_are_both_named(build_mace):
    module = build_mace(num_interactions=1)
    module.r_max.fill_(5.0)
    with pytest.raises(UserError, match=r"r_max is 5\.0, radial_embedding\.cutoff_fn\.r_max is 3\.0"):
        from_torch(module)


@pytest.mark.parametrize("numbers", [[1, 6, 119], [1, 6, 6], [0, 1, 6]])
def test_atomic_numbers_that_are_none_are_named(build_mace, numbers):
    with pytest.raises(UserError, match=f"its atomic_numbers are {', '.join(map(str, numbers))}, expected different"):
        from_torch(build_mace(num_interactions=1, atomic_numbers=numbers))


def test_a_compiled_or_wrapped_model_names_the_way_out(build_mace):
    module = build_mace(num_interactions=1)
    with pytest.raises(UserError, match=r"torch\.save\(model\.module, path\)"):
        from_torch(torch.nn.DataParallel(module))
    with pytest.raises(UserError, match=r"compiled by torch\.compile; .* torch\.save\(model\._orig_mod, path\)"):
        from_torch(torch.compile(module, backend="eager"))
