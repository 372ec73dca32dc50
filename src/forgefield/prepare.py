"""What a run outside of the workflow needs: converted data, the model to start from and statistics.

The functions of the stages make them. ``inputs.json`` in the run's directory says what each was made from, so that a
second call makes only what has changed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from shutil import rmtree
from typing import Any

from pydantic import BaseModel

from forgefield.config import Config, DatasetConfig, ModelConfig, RunConfig
from forgefield.config.evaluation import StatisticsConfig
from forgefield.data.convert import convert_dataset, dataset_files
from forgefield.data.sources.workers import available_cores
from forgefield.data.splits import PARTS
from forgefield.data.store import Store, is_store
from forgefield.errors import MachineError, UserError
from forgefield.files import read_json, sha256_of, write_json
from forgefield.models.foundation import import_model
from forgefield.models.inference import Engine, fastest_engine
from forgefield.models.plugin.code import code_files
from forgefield.models.potential import Potential, load_potential, save_potential
from forgefield.statistics import log_lines
from forgefield.statistics.compute import compute_statistics, require_known_elements

WEIGHTS = ("model.json", "weights.safetensors")
# PyTorch computes their energies on a CPU while JAX compiles
FEW_ATOMS = 10_000
Made = dict[str, Any]


@dataclass(frozen=True)
class RunPaths:
    """Where the inputs of a run are, and the run itself.

    Attributes:
        data: directory of train.h5, valid.h5 and test.h5.
        model: directory of the potential that training starts from.
        statistics: the file of the statistics.
        output: the run's directory.
        given: which of the first three the user has made, so that they are taken as they are.
    """

    data: Path
    model: Path
    statistics: Path
    output: Path
    given: frozenset[str] = frozenset()


def prepare_run(config: Config, run: RunConfig, paths: RunPaths) -> None:
    """Make what is missing of the inputs, or was made from something else; data and model at the same time.

    Raises:
        UserError: any mistake in the data, the model, or what they are together.
    """
    record = paths.output / "inputs.json"
    with ThreadPoolExecutor(1) as beside:
        data = beside.submit(_prepare_data, record, config, run, paths)
        _prepare_model(record, config, run, paths)
        if made := data.result():
            _note(record, paths.data, made)
    if "statistics" not in paths.given:
        train = paths.data / "train.h5"
        made = _made_from(run.statistics, [train, *(paths.model / name for name in WEIGHTS)])
        if _is_due(record, paths.statistics, made):
            engine = _statistics_engine(run, train)
            _call(engine, _make_statistics, paths.data, paths.model, run.statistics, paths.statistics, engine)
            _note(record, paths.statistics, made)


def _prepare_data(record: Path, config: Config, run: RunConfig, paths: RunPaths) -> Made | None:
    """Make the data in a process of their own, and say what of; None if they are there."""
    if "data" in paths.given:
        return None
    dataset = config.datasets[run.dataset]
    files = dataset_files(run.dataset, dataset)
    listed = [Path(dataset.split.file).expanduser()] if dataset.split.file else []
    made = _made_from(dataset, *files.values(), listed)
    if not _is_due(record, paths.data, made):
        return None
    _apart(_make_data, run.dataset, dataset, files, paths.data)
    return made


def _prepare_model(record: Path, config: Config, run: RunConfig, paths: RunPaths) -> None:
    model = config.models[run.model]
    if "model" in paths.given:
        _require_architecture(f"--model {paths.model}", paths.model, run.model, model)
        return
    made = _made_from(model, _foundation_files(model), code_files(model.python.object or ""))
    if _is_due(record, paths.model, made):
        engine = "torch" if run.backend == "fabric" else "jax"
        _call(engine, _make_foundation, run.model, model, paths.model, engine)
        _note(record, paths.model, made)


@contextmanager
def removed_on_error(output: Path) -> Iterator[None]:
    """Leave no directory behind that a mistake has kept from becoming a run."""
    is_new = not output.exists()
    try:
        yield
    except UserError:
        if is_new and not (output / "config.yaml").exists():  # which a training writes first
            rmtree(output, ignore_errors=True)
        raise


def _made_from(settings: BaseModel, *groups: Sequence[Path]) -> Made:
    """The settings and files that something is made from."""
    files = {str(path): sha256_of(path) for group in groups for path in group}
    return {"settings": settings.model_dump(mode="json"), "files": files}


def _is_due(record: Path, product: Path, made: Made) -> bool:
    """Whether the product is not there, or was made from something else."""
    return not product.exists() or _noted(record).get(product.stem) != made


def _note(record: Path, product: Path, made: Made) -> None:
    write_json(record, _noted(record) | {product.stem: made})


def _noted(record: Path) -> dict[str, Made]:
    return read_json(record) if record.exists() else {}


def _make_data(name: str, dataset: DatasetConfig, files: dict[str, list[Path]], output: Path) -> None:
    """Convert reference files; link stores, which are as they should be."""
    stores = {part: [path for path in paths if is_store(path)] for part, paths in files.items()}
    if not any(stores.values()):
        convert_dataset(name, dataset, output, complete=True, jobs=available_cores())
        return
    for part, paths in files.items():
        if part not in PARTS or len(paths) > 1 or paths != stores[part]:
            odd = next((path for path in paths if path not in stores[part]), paths[0])
            raise UserError(f"{odd}: stores are taken as they are, so give one for each of {', '.join(PARTS)}")
        with Store(paths[0]):
            pass
    output.mkdir(parents=True, exist_ok=True)
    (output / "test.h5").unlink(missing_ok=True)
    for part, (path,) in files.items():
        link = output / f".{part}.{os.getpid()}"
        link.symlink_to(path.resolve())
        os.replace(link, output / f"{part}.h5")


def _foundation_files(model: ModelConfig) -> list[Path]:
    """What a foundation model is read from, but for a URL, whose sha256 is among the settings."""
    if model.foundation is None or model.foundation.startswith(("http://", "https://")):
        return []
    path = Path(model.foundation).expanduser()
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file())
    return [path] if path.exists() else []  # the import says what is wrong


def _make_foundation(name: str, model: ModelConfig, output: Path, engine: Engine) -> None:
    """Import a model; copy one that forgefield has made and so checked, unless more is asked of it."""
    directory = Path(model.foundation).expanduser() if model.foundation else None
    if directory is None or not (directory / "model.json").exists() or model.sha256 or model.head:
        import_model(name, model, output, engine)
        return
    save_potential(_require_architecture(f"models.{name}.foundation: {directory}", directory, name, model), output)


def _require_architecture(where: str, directory: Path, name: str, model: ModelConfig) -> Potential:
    """The potential in a directory, which must be of the architecture that the run's model is said to have."""
    potential = load_potential(directory)
    if potential.architecture != model.architecture:
        raise UserError(
            f"{where} is a model of architecture {potential.architecture}, but models.{name}.architecture is "
            f"{model.architecture}; choose another model or write architecture: {potential.architecture}"
        )
    return potential


def _make_statistics(data: Path, foundation: Path, config: StatisticsConfig, output: Path, engine: Engine) -> None:
    with Store(data / "valid.h5") as valid:
        require_known_elements(valid, load_potential(foundation), foundation)
    if engine == "jax":
        from forgefield.trainers.runtime import configure_jax

        configure_jax(precision="float64")
    content = compute_statistics(data / "train.h5", foundation, config, engine)
    write_json(output, content)
    for line in log_lines(content):
        print(line)


def _statistics_engine(run: RunConfig, train: Path) -> Engine:
    """Which engine is done first: JAX compiles for some seconds, and is faster then."""
    engine = fastest_engine(run.backend)
    if engine == "torch" or run.backend == "jax":
        return engine
    with Store(train) as store:
        return "torch" if len(store) * store.max_atoms < FEW_ATOMS else "jax"


def _call(engine: Engine, function: Callable[..., None], *arguments: Any) -> None:
    """Call where the training needs PyTorch anyway; JAX would keep this process's precision and devices."""
    if engine == "jax":
        _apart(function, *arguments)
    else:
        function(*arguments)


def _apart(function: Callable[..., None], *arguments: Any) -> None:
    """Call in a process of its own, which gives back its devices and their memory when it ends."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            pool.submit(function, *arguments).result()
        except SystemExit:  # at a signal
            for child in active_children():
                child.kill()
            raise
        except BrokenProcessPool:
            raise MachineError("a process of the preparation was killed; is there memory enough? Start again") from None
