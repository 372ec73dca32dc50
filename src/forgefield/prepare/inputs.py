"""A run's inputs: which of them are missing or out of date, and in which processes they are made."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

from forgefield.config import Config, ModelConfig, RunConfig
from forgefield.data.convert import dataset_files
from forgefield.data.plans import check_full_batch
from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.models.inference import Engine, fastest_engine
from forgefield.models.plugin.code import code_files
from forgefield.prepare.apart import apart
from forgefield.prepare.lock import LOCK
from forgefield.prepare.making import make_data, make_foundation, make_statistics, require_architecture
from forgefield.prepare.paths import RunPaths
from forgefield.prepare.record import Record, made_from

WEIGHTS = ("model.json", "weights.safetensors")
# PyTorch computes their energies on a CPU while JAX compiles
FEW_ATOMS = 10_000


def prepare_run(config: Config, run: RunConfig, paths: RunPaths) -> None:
    """Make what is missing of the inputs, or was made from something else; data and model at the same time.

    Raises:
        UserError: any mistake in the data, the model, or what they are together.
    """
    record = Record(paths.output / "inputs.json")
    with ThreadPoolExecutor(1) as beside:
        data = beside.submit(_prepare_data, record, config, run, paths)
        _prepare_model(record, config, run, paths)
        data.result()
    if run.training.drop_last:
        with Store(paths.data / "train.h5") as train:
            check_full_batch(len(train), run.step_batch)
    if "statistics" not in paths.given:
        train = paths.data / "train.h5"
        made = made_from(run.statistics, [train, *(paths.model / name for name in WEIGHTS)])
        if record.is_due(paths.statistics, made):
            engine = _statistics_engine(run, config.models[run.model].architecture, train)
            with record.making(paths.statistics, made):
                _call(engine, make_statistics, paths.data, paths.model, run.statistics, paths.statistics, engine)


def _prepare_data(record: Record, config: Config, run: RunConfig, paths: RunPaths) -> None:
    if "data" in paths.given:
        return
    dataset = config.datasets[run.dataset]
    files = dataset_files(run.dataset, dataset)
    listed = [Path(dataset.split.file).expanduser()] if dataset.split.file else []
    made = made_from(dataset, *files.values(), listed)
    if record.is_due(paths.data, made):
        with record.making(paths.data, made):
            apart(make_data, run.dataset, dataset, files, paths.data)


def _prepare_model(record: Record, config: Config, run: RunConfig, paths: RunPaths) -> None:
    model = config.models[run.model]
    if "model" in paths.given:
        require_architecture(f"--model {paths.model}", paths.model, run.model, model)
        return
    made = made_from(model, _foundation_files(model), code_files(model.python.object or ""))
    if record.is_due(paths.model, made):
        engine = "torch" if run.backend == "fabric" else "jax"
        with record.making(paths.model, made):
            _call(engine, make_foundation, run.model, model, paths.model, engine)


def _foundation_files(model: ModelConfig) -> list[Path]:
    """What a foundation model is read from, but for a URL, whose sha256 is among the settings."""
    if model.foundation is None or model.foundation.startswith(("http://", "https://")):
        return []
    path = Path(model.foundation).expanduser()
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file())
    return [path] if path.exists() else []  # the import says what is wrong


def _statistics_engine(run: RunConfig, architecture: str, train: Path) -> Engine:
    """Which engine is done first: JAX compiles for some seconds, and is faster then."""
    engine = fastest_engine(run.backend)
    if run.backend == "fabric" and engine == "jax":
        with Store(train) as store:
            return "torch" if architecture != "mace" or len(store) * store.max_atoms < FEW_ATOMS else "jax"
    return engine


def _call(engine: Engine, function: Callable[..., None], *arguments: Any) -> None:
    """Call where the training needs PyTorch anyway; JAX would keep this process's precision and devices."""
    if engine == "jax":
        apart(function, *arguments)
    else:
        function(*arguments)


@contextmanager
def removed_on_error(output: Path) -> Iterator[None]:
    """Leave no directory behind that a mistake has kept from becoming a run."""
    is_new = not output.exists() or not any(path.name != LOCK for path in output.iterdir())
    try:
        yield
    except UserError:
        if is_new and not (output / "config.yaml").exists():  # which a training writes first
            rmtree(output, ignore_errors=True)
        raise
