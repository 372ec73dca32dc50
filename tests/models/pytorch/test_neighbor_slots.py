import pytest
import torch

from forgefield.models.pytorch.neighbor_slots import NeighborSlots


@pytest.mark.parametrize(("n_edges", "n_atoms"), [(60, 9), (40, 1), (3, 7), (1, 2), (0, 3)])
def test_sums_are_over_the_edges_that_end_at_each_atom(n_edges, n_atoms):
    generator = torch.Generator().manual_seed(0)
    # most of them at few atoms
    receiver = (n_atoms * torch.rand(n_edges, generator=generator) ** 3).long()
    left, right = (torch.randn(n_edges, 2, n, generator=generator, dtype=torch.float64) for n in (3, 5))
    expected = torch.zeros(n_atoms, 3, 5, dtype=torch.float64)
    expected.index_add_(0, receiver, torch.einsum("eal,ear->elr", left, right))

    slots = NeighborSlots(receiver, n_atoms)

    assert sorted(slots.edges[slots.filled].tolist()) == list(range(n_edges))
    found = slots.sums(left[slots.edges] * slots.filled[:, None, None], right[slots.edges])
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)


def test_atoms_with_about_as_many_neighbors_share_their_length():
    receiver = torch.arange(100).repeat_interleave(torch.arange(100) // 10)
    assert NeighborSlots(receiver, 100).filled.double().mean() > 0.75
