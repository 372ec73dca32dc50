"""Pytrees as arrays by name, as they stand in files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load_file, save_file

from forgefield.errors import UserError


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """A pytree's arrays under the names of their places in it."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    # not ascontiguousarray, which turns scalars into vectors
    return {jax.tree_util.keystr(k): np.asarray(v, order="C") for k, v in leaves}


def tree_of(arrays: Mapping[str, np.ndarray], template: Any, path: Path) -> Any:
    """The pytree like ``template`` of arrays read from ``path``.

    Raises:
        UserError: names, shapes or types are not those of ``template``.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    wanted = {jax.tree_util.keystr(k): v for k, v in leaves}
    wrong = sorted(set(arrays) ^ set(wanted)) or sorted(
        k for k, v in wanted.items() if arrays[k].shape != np.shape(v) or arrays[k].dtype != np.asarray(v).dtype
    )
    if wrong:
        raise UserError(
            f"{path}: {wrong[0]} does not match this model or optimizer; "
            "use the settings it was saved with, or another file"
        )
    return jax.tree_util.tree_unflatten(structure, [arrays[k] for k in wanted])


def save_arrays(path: Path, tree: Any) -> None:
    """Write a pytree's arrays under the names of their places in it."""
    save_file(named_arrays(tree), path)


def load_arrays(path: Path, template: Any) -> Any:
    """Read a pytree of arrays written by :func:`save_arrays`; see :func:`tree_of`."""
    return tree_of(load_file(path), template, path)
