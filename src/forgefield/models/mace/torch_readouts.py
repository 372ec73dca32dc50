"""Readouts of mace-torch models: which can be imported."""

from collections.abc import Iterator
from typing import Any

from forgefield.models.mace.torch_heads import heads_of
from forgefield.models.mace.torch_names import activation_name, irreps_terms, irreps_text

LINEAR, NONLINEAR = "LinearReadoutBlock", ("NonLinearReadoutBlock", "NonLinearBiasReadoutBlock")
GATES = ("silu", "tanh", "abs", None)


def unsupported_readouts(module: Any) -> Iterator[str]:
    """What is wrong with a module's readouts: linear ones, then a non-linear one unless there is a single layer."""
    readouts, layers, heads = list(module.readouts), len(list(module.interactions)), len(heads_of(module))
    if len(readouts) not in (1, layers):
        yield f"it has {len(readouts)} readouts of {layers} layers, expected one of each or only the last"
        return
    for what, values in _per_head(module):
        if values.numel() % heads or (heads > 1 and len(values) != heads):
            yield f"its {what} have shape {tuple(values.shape)}, expected a row for each of {heads} heads"
    for i, readout in enumerate(readouts):
        name = type(readout).__name__
        expected = NONLINEAR if layers > 1 and i == len(readouts) - 1 else (LINEAR,)
        if name not in expected:
            yield f"readout {i} is {name}, expected {' or '.join(expected)}"
        elif name == LINEAR:
            yield from _unsupported_width(i, readout.linear.irreps_out, heads)
        else:
            yield from _unsupported_width(i, readout.linear_2.irreps_out, heads)
            yield from _unsupported_hidden(i, readout, heads)


def _per_head(module: Any) -> Iterator[tuple[str, Any]]:
    yield "atomic energies", module.atomic_energies_fn.atomic_energies
    if type(module).__name__ == "ScaleShiftMACE":
        yield "scales", module.scale_shift.scale.reshape(-1)
        yield "shifts", module.scale_shift.shift.reshape(-1)


def _unsupported_width(i: int, irreps: Any, heads: int) -> Iterator[str]:
    if irreps_terms(irreps) != [(heads, 0, 1)]:
        yield f"readout {i} gives {irreps_text(irreps)}, expected {heads}x0e: one energy for each head"


def _unsupported_hidden(i: int, readout: Any, heads: int) -> Iterator[str]:
    hidden = irreps_terms(readout.linear_1.irreps_out)
    if len(hidden) != 1 or hidden[0][1:] != (0, 1):
        yield f"the hidden features of readout {i} are {irreps_text(readout.linear_1.irreps_out)}, expected scalars"
    elif hidden[0][0] % heads:
        yield f"the {hidden[0][0]} hidden features of readout {i} cannot be shared among {heads} heads"
    gate = readout_activation(readout)
    if gate not in GATES:
        yield f"the activation of readout {i} is {gate}, expected {', '.join(map(str, GATES))}"


def readout_activation(readout: Any) -> str | None:
    act = next(iter(readout.non_linearity.acts), None)
    return None if act is None else activation_name(act.f)
