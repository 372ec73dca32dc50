"""What a training depends on, by key: what decides its result, and what does not."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

from forgefield import __version__
from forgefield.config import RunConfig
from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.files import sha256_of
from forgefield.models.digest import described
from forgefield.models.plugin.code import code_files
from forgefield.models.potential import Potential
from forgefield.statistics import used_of

# keys of `training` that may change between the parts of a training that was interrupted
FREE_KEYS = {
    "epochs",
    "early_stopping",
    "checkpoint_every",
    "checkpoint_steps",
    "checkpoint_minutes",
    "keep_checkpoints",
    "stop_before",
    "hang_timeout",
    "eval_batch",
    "kernels",
    "micro_batches",
}
PACKAGES = {
    "jax": ("numpy", "jax", "jaxlib", "optax", "mpi4jax"),
    "fabric": ("numpy", "torch", "lightning", "flashcart"),
}


def fingerprint(config: RunConfig, data: Path, model: Path, statistics: Path) -> Iterator[tuple[str, Any]]:
    """What must be the same for a training to be continued.

    Of files that is what they hold: one that was made again, from a file of another name, say, is still the same.

    Raises:
        UserError: a file is missing.
    """
    yield "backend", config.backend
    yield from _flattened("training", config.training.model_dump(exclude=FREE_KEYS))
    if config.step_batch != config.training.batch:
        yield "step_batch", config.step_batch
    if config.training.balance == "repeat":  # for which an epoch depends on the number of processes
        yield "devices", config.n_devices
    for name, path in inputs(data, model, statistics).items():
        if not path.exists():
            raise UserError(f"{path}: no such file; run the stage that makes it first")
        yield name, _content_digest(name, path)


def inputs(data: Path, model: Path, statistics: Path) -> dict[str, Path]:
    """The files of a training, named by what they are: a directory that was moved is still the same."""
    files = {f"data/{name}": data / name for name in ("train.h5", "valid.h5")}
    files |= {f"model/{name}": model / name for name in ("model.json", "weights.safetensors")}
    return files | {"statistics": statistics}


def _content_digest(name: str, path: Path) -> str:
    """The sha256 of what decides a training in one of :func:`inputs`."""
    if name.startswith("data/"):
        with Store(path) as store:
            return store.digest()
    if name == "model/model.json":
        kept = described(path)
    elif name == "statistics":
        kept = used_of(path)
    else:
        return sha256_of(path)
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def code(potential: Potential) -> Iterator[tuple[str, str]]:
    """The files of a user's own model, which must be the same too: their weights do not tell what they compute."""
    files = code_files(potential.config["object"]) if potential.architecture == "python" else []
    for path in files:
        base = Path(os.path.commonpath([file.parent for file in files]))
        yield f"code/{path.relative_to(base).as_posix()}", sha256_of(path)


def notes(config: RunConfig) -> Iterator[tuple[str, Any]]:
    """What may be different when a training is continued, which is said then."""
    yield from _flattened("training", config.training.model_dump(include=FREE_KEYS))
    yield from [("parallelism", config.parallelism), ("devices x n_nodes", config.n_devices)]
    yield from [("python", python_version()), ("forgefield", __version__)]
    for package in PACKAGES[config.backend]:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            yield package, None


def _flattened(prefix: str, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flattened(f"{prefix}.{key}", value)
        else:
            yield f"{prefix}.{key}", value
