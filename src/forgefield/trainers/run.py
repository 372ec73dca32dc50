"""One training run as a stage: from converted data, model and statistics to a trained potential."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import yaml
from ase.data import chemical_symbols

from forgefield.config import RunConfig
from forgefield.data.loaders import PackedNeighbors
from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.files import atomic_file, read_json, sha256_of
from forgefield.models.energy import energy_function
from forgefield.models.potential import Potential, load_potential, save_potential
from forgefield.statistics import apply_statistics
from forgefield.trainers.checkpoints import set_aside_if_changed
from forgefield.trainers.force_matching import ForceMatching
from forgefield.trainers.optimizers import optimizer, schedule
from forgefield.trainers.parallel import METHODS, data_mesh
from forgefield.trainers.runtime import configure_jax

# what may change between the parts of a training that was interrupted
FREE_KEYS = {"epochs", "early_stopping", "checkpoint_every", "eval_batch"}


def train_run(config: RunConfig, data: Path, model: Path, statistics: Path, output: Path) -> None:
    """Train, or continue from the last checkpoint, and write the run's directory.

    Writes ``config.yaml``, ``history.csv``, ``checkpoints/`` and, when training is done, ``model/`` with the parameters
    of the epoch with the lowest validation loss. Where checkpoints of other settings or data are found, they are moved
    to ``checkpoints-before/`` and training starts anew. A run that is complete only writes its results again.

    Args:
        config: of the run.
        data: directory with ``train.h5`` and ``valid.h5``.
        model: directory of the potential to start from.
        statistics: JSON file with the energy shifts.
        output: the run's directory.

    Raises:
        UserError: settings, data and model do not fit together, or the loss is not finite.
    """
    _check_engine(config)
    configure_jax(precision=config.training.precision, devices=config.devices)
    potential = apply_statistics(load_potential(model), read_json(statistics))
    checkpoints = output / "checkpoints"
    fingerprint = dict(_fingerprint(config, data, model, statistics))
    if changed := set_aside_if_changed(checkpoints, output / "checkpoints-before", fingerprint):
        _say(f"training starts anew, because {changed}; the checkpoints until then are in {output}/checkpoints-before")
    with ExitStack() as stack:
        train, valid = (stack.enter_context(Store(data / f"{split}.h5")) for split in ("train", "valid"))
        for store in (train, valid):
            _check_elements(store, potential, model)
        trainer = _trainer(config, potential, len(train), checkpoints, output / "history.csv", fingerprint)
        trainer.set_datasets(train, valid if len(valid) else None)
        if (done := trainer.resume()) is not None:
            _say(f"continues after epoch {done}, step {trainer.step}, from {checkpoints}")
        _write_config(config, output / "config.yaml")
        trainer.train(config.training.epochs)
    save_potential(_trained(potential, trainer), output / "model")


def _trainer(
    config: RunConfig,
    potential: Potential,
    n_train: int,
    checkpoints: Path,
    log_file: Path,
    fingerprint: dict[str, Any],
) -> ForceMatching:
    training = config.training
    steps = n_train // training.batch if training.drop_last else -(-n_train // training.batch)
    lr = schedule(training.lr, steps * training.epochs, **training.schedule.model_dump())
    energy = energy_function(potential)
    dtype = np.dtype(training.precision)
    alone = config.devices == 1 and config.parallelism != "jax"
    return ForceMatching(
        {k: np.asarray(v, dtype) for k, v in potential.parameters.items()},
        optimizer(training.optimizer, lr, weight_decay=training.weight_decay, clip_norm=training.clip_norm),
        lambda params: partial(energy, params),
        PackedNeighbors(potential.cutoff, potential.elements, potential.energy_shifts),
        batch=training.batch,
        eval_batch=training.eval_batch,
        parallelism="single" if alone else "jax",
        mesh=None if alone else data_mesh(jax.local_devices()[: config.devices]),
        gammas={"U": training.loss.energy, "F": training.loss.forces, "virial": training.loss.virial},
        loss=training.loss.kind,
        huber_delta=training.loss.huber_delta,
        ema=training.ema,
        early_stopping=training.early_stopping,
        drop_last=training.drop_last,
        seed=training.seed,
        checkpoint_path=checkpoints,
        checkpoint_every=training.checkpoint_every,
        log_file=log_file,
        fingerprint=fingerprint,
    )


def _check_engine(config: RunConfig) -> None:
    if config.backend != "jax":
        raise UserError(f"backend: {config.backend} cannot train here; write backend: jax")
    if config.parallelism not in METHODS:
        raise UserError(f"parallelism: {config.parallelism} cannot train here; choose one of {', '.join(METHODS)}")
    if config.n_nodes > 1:
        raise UserError(f"n_nodes: {config.n_nodes} cannot be used by parallelism {config.parallelism}; write 1")


def _check_elements(store: Store, potential: Potential, model: Path) -> None:
    if unknown := sorted(set(store.elements) - set(potential.elements)):
        words = [", ".join(chemical_symbols[z] for z in elements) for elements in (unknown, potential.elements)]
        raise UserError(
            f"{store.path}: the model {model} does not know {words[0]} (it knows {words[1]}); "
            "leave those structures out or choose a model for these elements"
        )


def _fingerprint(config: RunConfig, data: Path, model: Path, statistics: Path) -> Iterator[tuple[str, Any]]:
    """What must be the same for a training to be continued, by name."""
    yield from _flattened("training", config.training.model_dump(exclude=FREE_KEYS))
    for path in (data / "train.h5", data / "valid.h5", model / "model.json", model / "weights.safetensors", statistics):
        if not path.exists():
            raise UserError(f"{path}: no such file; run the stage that makes it first")
        yield f"{path.parent.name}/{path.name}", sha256_of(path)


def _flattened(prefix: str, content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flattened(f"{prefix}.{key}", value)
        else:
            yield f"{prefix}.{key}", value


def _trained(potential: Potential, trainer: ForceMatching) -> Potential:
    source = {
        **potential.source,
        "trained": {"epoch": trainer.best_epoch, "parameters": "of the lowest validation loss"},
    }
    return replace(potential, parameters=trainer.best_params, pretrained=True, source=source)


def _write_config(config: RunConfig, path: Path) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
