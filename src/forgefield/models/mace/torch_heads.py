"""One head of a mace-torch model that has several, as a model of its own."""

from collections.abc import Mapping
from typing import Any

import torch

from forgefield.config.messages import did_you_mean
from forgefield.errors import UserError

Tensors = Mapping[str, torch.Tensor]


def heads_of(module: Any) -> list[str]:
    return [str(head) for head in getattr(module, "heads", None) or ["Default"]]


def choose_head(heads: list[str], head: str | None) -> str:
    """The head to import, which the user names unless there is only one.

    Raises:
        UserError: there are several and none is named, or there is none of this name.
    """
    if head is None and len(heads) > 1:
        raise UserError(
            f"this mace-torch model has {len(heads)} heads ({', '.join(heads)}); choose one by the key `head`"
        )
    if head is not None and head not in heads:
        raise UserError(f"this mace-torch model has no head {head!r}{did_you_mean(head, heads)}")
    return head or heads[0]


def single_head(tensors: Tensors, index: int, heads: int) -> dict[str, torch.Tensor]:
    """The state dict of one head of several, as mace-torch's ``remove_pt_head`` makes it.

    e3nn divides a linear map by the root of the number of its inputs, of which a single head has fewer.
    """
    kept = dict(tensors)
    for name in ("atomic_energies_fn.atomic_energies", "scale_shift.scale", "scale_shift.shift"):
        if name in tensors:
            kept[name] = tensors[name][index : index + 1]
    for name, tensor in tensors.items():
        if name.startswith("readouts.") and tensor.numel():
            layer, part = name.removeprefix("readouts.").split(".", 1)
            hidden = tensors.get(f"readouts.{layer}.linear_2.weight", tensor).numel() // heads**2
            kept[name] = _of_head(part, tensor, index, heads, hidden)
    return kept


def _of_head(part: str, tensor: torch.Tensor, index: int, heads: int, hidden: int) -> torch.Tensor:
    """A readout's array for one head, which has ``hidden`` of the hidden features."""
    if part == "linear.weight":
        return tensor.reshape(-1, heads)[:, index].clone()
    if part == "linear_1.weight":
        return tensor.reshape(-1, heads, hidden)[:, index].flatten()
    if part == "linear_mid.weight":
        return tensor.reshape(heads, hidden, heads, hidden)[index, :, index].flatten() / heads**0.5
    if part == "linear_2.weight":
        return tensor.reshape(heads, hidden, heads)[index, :, index].flatten() / heads**0.5
    # biases, and e3nn's masks of outputs
    return tensor.reshape(heads, -1)[index].flatten()
