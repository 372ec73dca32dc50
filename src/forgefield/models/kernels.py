"""Which code evaluates a model's couplings: our own, or cuEquivariance."""

from importlib.util import find_spec
from typing import Literal

import jax

from forgefield.errors import UserError
from forgefield.models.mace.settings import Kernels

AskedKernels = Literal["auto"] | Kernels


def choose_kernels(asked: AskedKernels) -> Kernels:
    """What to use: ``auto`` is cuEquivariance on a GPU where it and its CUDA kernels are installed.

    Raises:
        UserError: cuEquivariance is asked for and not installed, or on a GPU its CUDA kernels are not.
    """
    on_gpu = jax.default_backend() == "gpu"
    missing = find_spec("cuequivariance_jax") is None
    without_cuda = on_gpu and find_spec("cuequivariance_ops_jax") is None
    if asked == "auto":
        return "cuequivariance" if on_gpu and not missing and not without_cuda else "reference"
    if asked == "cuequivariance" and missing:
        raise UserError(
            "kernels: cuequivariance needs cuequivariance-jax, which is not installed; "
            "pip install 'forgefield[kernels]', or write kernels: reference"
        )
    if asked == "cuequivariance" and without_cuda:
        raise UserError(
            "kernels: cuequivariance needs its CUDA kernels on a GPU, which are not installed; "
            "pip install cuequivariance-ops-jax-cu13 (or -cu12, as JAX's own CUDA), or write kernels: reference"
        )
    return asked
