"""Making a module of PyTorch and filling it with a potential's arrays."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch

from forgefield.errors import UserError
from forgefield.models.description import AGAIN


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Many modules make constants in torch's default dtype, when they are built and some when they run."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def seeded(seed: int, dtype: torch.dtype) -> Iterator[None]:
    """Random parameters of ``seed`` in ``dtype``; the random numbers of the caller stay what they are."""
    with torch.random.fork_rng(devices=[]), default_dtype(dtype):
        torch.random.default_generator.manual_seed(seed)
        yield


def host_array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().copy()


def fill(module: torch.nn.Module, arrays: Mapping[str, np.ndarray]) -> None:
    """Replace all parameters and persistent buffers.

    Raises:
        UserError: an array is missing, unknown or of another shape.
    """
    if wrong := wrong_array({k: v.shape for k, v in arrays.items()}, module):
        raise UserError(f"weights.safetensors: {wrong}; {AGAIN}")
    module.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})


def wrong_array(found: Mapping[str, tuple[int, ...]], module: torch.nn.Module) -> str | None:
    """The first array that is missing, unknown or of another shape than in ``module``, or None."""
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    for name in (*expected, *found):
        if name not in found:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} is unknown to models of these settings"
        if tuple(found[name]) != expected[name]:
            return f"{name} has shape {tuple(found[name])}, expected {expected[name]}"
    return None
