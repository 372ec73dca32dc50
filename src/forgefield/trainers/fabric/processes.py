"""The processes of ``torch.distributed`` that train together, each with one device: gloo on CPUs, nccl on GPUs."""

from collections.abc import Iterable, Sequence

import torch
from lightning.fabric import Fabric
from torch import Tensor, distributed

from forgefield.data.processes import Item


class FabricProcesses:
    """The processes that Fabric has connected; also the :class:`~forgefield.data.processes.Processes` of a loader.

    Attributes:
        index, count: this process, counted from 0, of all processes.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.index, self.count = fabric.global_rank, fabric.world_size

    def exchange(self, item: Item) -> list[Item]:
        if self.count == 1:
            return [item]
        everyone: list[Item] = [item] * self.count
        distributed.all_gather_object(everyone, item)
        return everyone

    def broadcast(self, item: Item) -> Item:
        return self.fabric.broadcast(item)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors of one type by their sums over all processes, the same bits on each, in one message."""
        if self.count == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        distributed.all_reduce(flat)
        for tensor, total in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    def take_over(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors of any types by those of process 0, in one message."""
        tensors = list(tensors)
        if self.count == 1 or not tensors:
            return
        own = [tensor.detach().flatten().view(torch.uint8) for tensor in tensors]
        flat = torch.cat(own)
        distributed.broadcast(flat, 0)
        for tensor, part in zip(tensors, flat.split([part.numel() for part in own]), strict=True):
            # a part may begin where numbers of its type do not
            tensor.detach().copy_(part.clone().view(tensor.dtype).view_as(tensor))
