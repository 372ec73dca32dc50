"""mace-torch in eager mode: its own model, batches, loss and order of operations."""

import time

import numpy as np
import torch
from cases import LEARNING_RATE, Case

from forgefield.data.structures import Structure
from forgefield.models.mace.torch_reference import quiet_mace
from forgefield.models.potential import Potential

with quiet_mace():
    from mace.data import AtomicData, Configuration
    from mace.modules import WeightedEnergyForcesLoss
    from mace.tools import AtomicNumberTable
    from mace.tools.torch_geometric.batch import Batch


class TorchEngine:
    """A model and a batch, and one step of training or inference with them."""

    def __init__(self, case: Case, precision: str, train: bool) -> None:
        torch.set_default_dtype(getattr(torch, precision))
        self._case, self._train = case, train
        with quiet_mace():
            self._model = torch.load(case.module, weights_only=False).to(torch.get_default_dtype())
        self._batch = Batch.from_data_list([atomic_data(case.potential, s) for s in case.batch])
        self._loss = WeightedEnergyForcesLoss(energy_weight=case.gammas["U"], forces_weight=case.gammas["F"])
        if train:
            self._optimizer = torch.optim.Adam(self._model.parameters(), lr=LEARNING_RATE)
        else:
            # as mace-torch's own calculator does
            self._model.requires_grad_(False)

    def step(self) -> float | None:
        """The loss before an optimizer step; None for inference."""
        if not self._train:
            self._predicted = self._model(self._batch.to_dict(), training=False)
            return None
        loss = self._backward()
        self._optimizer.step()
        return float(loss.detach())

    def _backward(self) -> torch.Tensor:
        # as mace.tools.train.take_step does
        self._optimizer.zero_grad(set_to_none=True)
        self._predicted = self._model(self._batch.to_dict(), training=True)
        loss = self._loss(pred=self._predicted, ref=self._batch)
        loss.backward()
        return loss

    def first_step(self) -> tuple[float, dict[str, np.ndarray]]:
        """Make the first step.

        Returns:
            Its seconds; energies (B,) eV, forces (N, 3) eV/Å and, for training, the loss and its gradient by parameter.
        """
        start = time.perf_counter()
        loss = self.step()
        seconds = time.perf_counter() - start
        found = {"energy": self._predicted["interaction_energy"], "forces": self._predicted["forces"]}
        if self._train:
            found |= {f"gradient/{k}": p.grad for k, p in self._model.named_parameters() if p.numel()}
            found["loss"] = torch.tensor(loss)
        return seconds, {name: tensor.detach().numpy() for name, tensor in found.items()}

    def batch_seconds(self) -> dict[str, float]:
        """How long it takes to build a batch from structures whose neighbour lists are kept, or are not."""
        start = time.perf_counter()
        data = [atomic_data(self._case.potential, s) for s in self._case.batch]
        middle = time.perf_counter()
        Batch.from_data_list(data)
        end = time.perf_counter()
        return {"kept": end - middle, "new": end - start}

    def set_threads(self, threads: int) -> None:
        torch.set_num_threads(threads)


def atomic_data(potential: Potential, structure: Structure) -> AtomicData:
    """A structure with its labels and neighbour list as mace-torch makes it."""
    configuration = Configuration(
        atomic_numbers=structure.numbers,
        positions=structure.positions,
        properties={"energy": structure.energy, "forces": structure.forces},
        property_weights={"energy": 1.0, "forces": 1.0},
        cell=structure.cell.copy(),
        pbc=tuple(bool(p) for p in structure.pbc),
    )
    return AtomicData.from_config(configuration, z_table=AtomicNumberTable(potential.elements), cutoff=potential.cutoff)
