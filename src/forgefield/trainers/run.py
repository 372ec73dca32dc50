"""One training run as a stage: from converted data, model and statistics to a trained potential."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from forgefield.config import RunConfig
from forgefield.data.processes import Processes
from forgefield.data.store import Store
from forgefield.errors import MachineError, UserError
from forgefield.files import atomic_file, sha256_of, write_json
from forgefield.models.potential import Potential, load_potential, save_potential
from forgefield.provenance import provenance
from forgefield.statistics import apply_statistics
from forgefield.statistics.compute import require_known_elements
from forgefield.trainers.checkpoints import set_aside_if_changed
from forgefield.trainers.epoch_trainer import EpochTrainer

ENGINES = {"jax": "forgefield.trainers.jax_engine", "fabric": "forgefield.trainers.fabric.engine"}
BEFORE = "checkpoints-before"
# what may change between the parts of a training that was interrupted
FREE_KEYS = {"epochs", "early_stopping", "checkpoint_every", "eval_batch", "kernels", "micro_batches"}


def connect(config: RunConfig) -> Processes:
    """The processes that do a run, of which this is one, connected by the run's engine."""
    return _engine(config.backend).prepare(config)


def train_run(
    config: RunConfig, data: Path, model: Path, statistics: Path, output: Path, processes: Processes | None = None
) -> None:
    """Train, or continue from the last checkpoint, and write the run's directory.

    Writes ``config.yaml``, ``history.csv``, ``checkpoints/`` and, when training is done, ``provenance.json`` and
    ``model/`` with the parameters of the epoch with the lowest validation loss. Where checkpoints of other settings or
    data are found, they are moved to ``checkpoints-before/`` and training starts anew. A run that is complete only
    writes its results again.

    Args:
        config: of the run.
        data: directory with ``train.h5`` and ``valid.h5``.
        model: directory of the potential to start from.
        statistics: JSON file with the energy shifts.
        output: the run's directory.
        processes: those of :func:`connect`, where that was called before.

    Raises:
        UserError: settings, data and model do not fit together, or the loss is not finite.
        MachineError: a file cannot be written; the last checkpoint is kept.
    """
    engine = _engine(config.backend)
    processes = processes or engine.prepare(config)
    potential = apply_statistics(load_potential(model), statistics)
    checkpoints = output / "checkpoints"
    fingerprint = dict(_fingerprint(config, data, model, statistics)) if processes.index == 0 else {}
    with ExitStack() as stack:
        train, valid = (stack.enter_context(Store(data / f"{split}.h5")) for split in ("train", "valid"))
        if processes.index == 0:
            for store in (train, valid):
                require_known_elements(store, potential, model)
        files = {"checkpoints": checkpoints, "log_file": output / "history.csv"}
        trainer = engine.make_trainer(
            config, processes, potential, train, valid if len(valid) else None, **files, fingerprint=fingerprint
        )
        # only now, when nothing is left that could be refused
        if processes.index == 0 and (changed := set_aside_if_changed(checkpoints, output / BEFORE, fingerprint)):
            _say(f"training starts anew, because {changed}; the checkpoints until then are in {output}/{BEFORE}")
        if (done := trainer.resume()) is not None and processes.index == 0:
            going_on = f"continues after epoch {done}, step {trainer.step}, from {checkpoints}"
            _say(trainer.complete(config.training.epochs) or going_on)
        try:
            if processes.index == 0:
                _write_config(config, output / "config.yaml")
            trainer.train(config.training.epochs)
            if processes.index == 0:
                save_potential(_trained(potential, trainer), output / "model")
                write_json(output / "provenance.json", _provenance(config, trainer, fingerprint))
        except OSError as error:
            raise MachineError(f"{error}; repair this and run again: training continues from {checkpoints}") from None


def _engine(backend: str) -> ModuleType:
    """The engine's module, imported only now: one is enough for an installation."""
    try:
        return import_module(ENGINES[backend])
    except ModuleNotFoundError as error:
        raise UserError(
            f"backend: {backend} needs {error.name}, which is not installed; pip install 'forgefield[{backend}]'"
        ) from None


def _fingerprint(config: RunConfig, data: Path, model: Path, statistics: Path) -> Iterator[tuple[str, Any]]:
    """What must be the same for a training to be continued, by name."""
    yield "backend", config.backend
    yield from _flattened("training", config.training.model_dump(exclude=FREE_KEYS))
    files = {f"data/{name}": data / name for name in ("train.h5", "valid.h5")}
    files |= {f"model/{name}": model / name for name in ("model.json", "weights.safetensors")}
    # named by what they are: a directory that was moved is still the same
    for name, path in (files | {"statistics": statistics}).items():
        if not path.exists():
            raise UserError(f"{path}: no such file; run the stage that makes it first")
        yield name, sha256_of(path)


def _flattened(prefix: str, content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _flattened(f"{prefix}.{key}", value)
        else:
            yield f"{prefix}.{key}", value


def _trained(potential: Potential, trainer: EpochTrainer) -> Potential:
    source = {
        **potential.source,
        "trained": {"epoch": trainer.best_epoch, "parameters": "of the lowest validation loss"},
    }
    return replace(potential, parameters=trainer.best_params, pretrained=True, source=source)


def _provenance(config: RunConfig, trainer: EpochTrainer, fingerprint: dict[str, Any]) -> dict[str, Any]:
    """By what, from what and in which time a run was trained."""
    rows = trainer.history
    return provenance(config.backend) | {
        "sha256": {
            name: value for name, value in fingerprint.items() if name.startswith(("data/", "model/", "statis"))
        },
        "trained": {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "epochs": len(rows),
            "best_epoch": trainer.best_epoch,
            "seconds": round(sum(row["seconds"] for row in rows), 3),
        },
    }


def _write_config(config: RunConfig, path: Path) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
