"""One training run as a stage: from converted data, model and statistics to a trained potential."""

import errno
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from forgefield.config import RunConfig
from forgefield.data.processes import Processes
from forgefield.data.store import Store
from forgefield.errors import MachineError, UserError
from forgefield.files import WRITE_ERRORS, atomic_file, write_json
from forgefield.models.potential import Potential, load_potential, save_potential
from forgefield.statistics import apply_statistics
from forgefield.statistics.compute import require_known_elements
from forgefield.trainers.changes import before_continuing
from forgefield.trainers.epoch_trainer import EpochTrainer
from forgefield.trainers.fingerprint import code, fingerprint, notes
from forgefield.trainers.hangs import HangWatch
from forgefield.trainers.origin import input_hashes, made_from, training_provenance
from forgefield.trainers.say import say
from forgefield.trainers.stopping import Stop, end_of_job

ENGINES = {"jax": "forgefield.trainers.jax_engine", "fabric": "forgefield.trainers.fabric.engine"}
# which can be repaired, and name no file in some cases
DISK_ERRORS = WRITE_ERRORS | {errno.EROFS, errno.EACCES, errno.EPERM, errno.ESTALE}
BEFORE, HANGS = "checkpoints-before", ".hangs"


def connect(config: RunConfig) -> Processes:
    """The processes that do a run, of which this is one, connected by the run's engine."""
    return _engine(config.backend).prepare(config)


def train_run(
    config: RunConfig,
    data: Path,
    model: Path,
    statistics: Path,
    output: Path,
    processes: Processes | None = None,
    *,
    stop: Stop | None = None,
    allowed: Collection[str] = (),
    on_hang: Callable[[str], Any] | None = None,
) -> None:
    """Train, or continue from the last checkpoint, and write the run's directory.

    Writes ``config.yaml``, ``history.csv``, ``checkpoints/`` and, when training is done, ``provenance.json`` and
    ``model/`` with the parameters of the epoch with the lowest validation loss. Where the checkpoints of a complete
    training of other settings or data are found, they are moved into ``checkpoints-before/`` with its results, and
    training starts anew. A run that is complete only writes its results again.

    Args:
        config: of the run.
        data: directory with ``train.h5`` and ``valid.h5``.
        model: directory of the potential to start from.
        statistics: JSON file with the energy shifts.
        output: the run's directory.
        processes: those of :func:`connect`, where that was called before.
        stop: what asks this process to end.
        allowed: keys that may have changed though they decide the result, as ``training.lr``.
        on_hang: is called by a thread with what there is to say when a process does not answer, and ends this one.

    Raises:
        UserError: settings, data and model do not fit together, or are others than when the training began, or the loss
            is not finite.
        MachineError: a file cannot be read or written; the last checkpoint is kept.
        StoppedError: a process was asked to end, or its time is nearly over; a checkpoint was written.
    """
    engine = _engine(config.backend)
    processes, stop = processes or engine.prepare(config), stop or Stop()
    potential = apply_statistics(load_potential(model), statistics)
    checkpoints = output / "checkpoints"
    origin, hashes = {}, {}
    if processes.index == 0:
        own = dict(code(potential))
        origin = dict(fingerprint(config, data, model, statistics)) | own
        hashes = input_hashes(data, model, statistics, potential) | own
    with ExitStack() as stack:
        train, valid = (stack.enter_context(Store(data / f"{split}.h5")) for split in ("train", "valid"))
        if processes.index == 0:
            for store in (train, valid):
                require_known_elements(store, potential, model)
        files = {"checkpoints": checkpoints, "log_file": output / "history.csv"}
        trainer = engine.make_trainer(
            config, processes, potential, train, valid if len(valid) else None, **files, fingerprint=origin
        )
        trainer.notes = dict(notes(config))
        stack.enter_context(_faults_of_disks(checkpoints))
        # only now, when nothing is left that could be refused
        remarks = []
        if processes.index == 0:
            changed = checkpoints, output / BEFORE, config.training, origin, trainer.notes, allowed
            remarks = before_continuing(*changed, dict(made_from([train, valid])))
        for end, reason in processes.broadcast(_limits(stop, config) if processes.index == 0 else []):
            stop.limit(end, reason)
        if trainer.resume(allowed) and processes.index == 0:
            going_on = f"continues after {trainer.standing()}; from {checkpoints}"
            say(trainer.complete(config.training.epochs) or going_on)
            trainer.remarks.extend(remarks)
        if processes.index == 0:
            _write_config(config, output / "config.yaml")
        with _watch(config, processes, stop, output, on_hang):
            trainer.train(config.training.epochs, stop)
        if processes.index == 0:
            save_potential(_trained(potential, trainer), output / "model")
            write_json(output / "provenance.json", training_provenance(config, trainer, hashes))


@contextmanager
def _faults_of_disks(checkpoints: Path) -> Iterator[None]:
    """Say of a file that cannot be read or written how to go on."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno not in DISK_ERRORS:  # such as a lost connection
            raise
        raise MachineError(f"{error}; repair this and run again: training continues from {checkpoints}") from None


def _engine(backend: str) -> ModuleType:
    """The engine's module, imported only now: one is enough for an installation."""
    try:
        return import_module(ENGINES[backend])
    except ModuleNotFoundError as error:
        raise UserError(
            f"backend: {backend} needs {error.name}, which is not installed; pip install 'forgefield[{backend}]'"
        ) from None


def _watch(
    config: RunConfig, processes: Processes, stop: Stop, output: Path, on_hang: Callable[[str], Any] | None
) -> AbstractContextManager:
    """Looks whether all processes go on, where there are several and somebody wants to know."""
    limit = config.training.hang_timeout
    if processes.count == 1 or limit is None or on_hang is None:
        return nullcontext()
    return HangWatch(output / HANGS, processes, stop, limit, on_hang)


def _limits(stop: Stop, config: RunConfig) -> list[tuple[float, str]]:
    """When the run must have ended, and why; for all processes, which in a validation hear of one another only late."""
    limits = []
    if config.training.stop_before is not None:
        end = stop.started + 60 * config.training.stop_before
        limits.append((end, "before the time of training.stop_before"))
    if (end := end_of_job()) is not None:
        limits.append((end, "before the end of the Slurm job"))
    return limits


def _trained(potential: Potential, trainer: EpochTrainer) -> Potential:
    source = {
        **potential.source,
        "trained": {"epoch": trainer.best_epoch, "parameters": "of the lowest validation loss"},
    }
    # buffers that are not persistent are no part of a model
    buffers = {name: trainer.best_buffers.get(name, value) for name, value in potential.buffers.items()}
    return replace(potential, parameters=trainer.best_params, buffers=buffers, pretrained=True, source=source)


def _write_config(config: RunConfig, path: Path) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True))
