import numpy as np
import pytest
import torch

from forgefield.errors import UserError
from forgefield.models.mace.torch_exchange import from_torch, to_torch
from forgefield.models.mace.torch_pickle import read_pickle
from forgefield.models.mace.torch_reference import quiet_mace, reference
from forgefield.models.pytorch.building import default_dtype

HEADS = ["dft", "pbe", "ccsd"]


@pytest.fixture(scope="module", params=["NonLinearReadoutBlock", "NonLinearBiasReadoutBlock"])
def several(request, build_mace):
    """A model of three heads, with energies, scales and shifts of their own."""
    module = build_mace(
        dtype=torch.float64,
        heads=HEADS,
        hidden_irreps="4x0e+4x1o",
        readout_cls=request.param,
        atomic_energies=np.arange(9.0).reshape(3, 3),
        atomic_inter_scale=[0.8, 0.9, 1.1],
        atomic_inter_shift=[0.1, 0.2, 0.3],
    )
    with torch.no_grad():
        for parameter in module.readouts.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return module


@pytest.mark.parametrize("head", ["dft", "ccsd"])
def test_a_head_is_what_mace_torch_makes_of_it(several, head):
    from mace.tools.scripts_utils import remove_pt_head

    with quiet_mace(), default_dtype(torch.float64):
        expected = from_torch(remove_pt_head(several, head))
    potential = from_torch(several, head)
    assert potential.config == expected.config
    assert potential.energy_shifts == expected.energy_shifts
    assert potential.source["mace_torch"]["head"] == head
    for name, array in expected.parameters.items():
        np.testing.assert_array_equal(potential.parameters[name], array, err_msg=name)


@pytest.mark.parametrize("head", ["dft", "ccsd"])
def test_a_head_gives_the_numbers_of_the_whole_model(several, head, structures):
    index = HEADS.index(head)
    potential = from_torch(several, head)
    assert list(potential.energy_shifts.values()) == [3.0 * index, 3.0 * index + 1, 3.0 * index + 2]
    single = to_torch(potential, torch.float64)
    assert single.heads == [head]
    for structure in structures[:3]:
        for found, expected in zip(reference(single, structure), reference(several, structure, index), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_head_can_be_taken_from_an_unread_pickle(several, save_mace, tmp_path):
    record = read_pickle(save_mace(several, tmp_path / "x.model"))
    found, expected = from_torch(record, "pbe"), from_torch(several, "pbe")
    for name, array in expected.parameters.items():
        np.testing.assert_array_equal(found.parameters[name], array, err_msg=name)


def test_a_head_must_be_chosen_and_known(several):
    with pytest.raises(UserError, match=r"has 3 heads \(dft, pbe, ccsd\); choose one by the key `head`"):
        from_torch(several)
    with pytest.raises(UserError, match=r"no head 'pbo'; did you mean pbe\?"):
        from_torch(several, "pbo")
