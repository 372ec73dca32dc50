"""What a training step changes, and its form in a checkpoint."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from forgefield.errors import UserError


@dataclass
class TrainState:
    """Everything a step changes.

    Attributes:
        params: the model's parameters by the potential's names.
        optimizers: that share these parameters.
        average: moving average of the parameters; None where none is kept.
        buffers: gives what the model's own code may change as it is trained, by name.
        step: optimizer steps done.
    """

    params: dict[str, torch.nn.Parameter]
    optimizers: Sequence[torch.optim.Optimizer]
    average: dict[str, Tensor] | None
    buffers: Callable[[], dict[str, Tensor]]
    step: int = 0

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies of all arrays on the host, by ``section/name``."""
        arrays = {"step": np.array(self.step)}
        for section, tensors in (self._sections() | self._moments()).items():
            arrays |= {f"{section}/{name}": array for name, array in host_copies(tensors).items()}
        return arrays

    def restore(self, arrays: Mapping[str, np.ndarray], path: Path) -> None:
        """Take over :meth:`arrays`, read from ``path``.

        Raises:
            UserError: they belong to another model.
        """
        for section, tensors in self._sections().items():
            saved = section_of(arrays, section)
            if {k: v.shape for k, v in saved.items()} != {k: tuple(v.shape) for k, v in tensors.items()}:
                raise UserError(f"{path}: its {section} do not match this model; use the settings it was saved with")
            with torch.no_grad():
                for name, tensor in tensors.items():
                    tensor.copy_(torch.from_numpy(saved[name]))
        self.step = int(arrays["step"])
        moments = {key.split("/")[1] for key in arrays if key.startswith("optimizer/")}
        by_key = {moment: section_of(arrays, f"optimizer/{moment}") for moment in sorted(moments)}
        for optimizer in self.optimizers:
            states = {
                i: {moment: torch.from_numpy(values[name]) for moment, values in by_key.items() if name in values}
                for i, name in enumerate(self._names(optimizer))
            }
            groups = optimizer.state_dict()["param_groups"]
            optimizer.load_state_dict({"state": states, "param_groups": groups})

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Put the moving average, where there is one, in the place of the parameters for a while."""
        if self.average is None:
            yield
            return
        own = {name: value.detach().clone() for name, value in self.params.items()}
        _copy(self.average, self.params)
        try:
            yield
        finally:
            _copy(own, self.params)

    def validated(self) -> dict[str, np.ndarray]:
        """Copies of the parameters that are validated, the moving average where there is one, on the host."""
        return host_copies(self.params if self.average is None else self.average)

    def _sections(self) -> dict[str, Mapping[str, Tensor]]:
        return {"params": self.params, "average": self.average or {}, "buffers": self.buffers()}

    def _moments(self) -> dict[str, dict[str, Tensor]]:
        """The optimizer's tensors, by ``optimizer/key`` and parameter."""
        sections: dict[str, dict[str, Tensor]] = {}
        for optimizer in self.optimizers:
            for name in self._names(optimizer):
                for key, value in optimizer.state[self.params[name]].items():
                    sections.setdefault(f"optimizer/{key}", {})[name] = value
        return sections

    def _names(self, optimizer: torch.optim.Optimizer) -> list[str]:
        """The parameters of one of the optimizers, in its order."""
        names = {id(parameter): name for name, parameter in self.params.items()}
        return [names[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]


def host_copies(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}


def section_of(arrays: Mapping[str, np.ndarray], section: str) -> dict[str, np.ndarray]:
    prefix = section + "/"
    return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}


@torch.no_grad()
def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    for name, value in source.items():
        target[name].copy_(value)
