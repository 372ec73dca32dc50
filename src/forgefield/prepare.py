"""What a run outside of the workflow needs: converted data, the model to start from and statistics.

The functions of the stages make them. ``inputs.json`` in the run's directory says what each was made from, so that a
second call makes only what has changed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Any

from pydantic import BaseModel

from forgefield.config import Config, DatasetConfig, ModelConfig, RunConfig
from forgefield.config.evaluation import StatisticsConfig
from forgefield.data.convert import convert_dataset
from forgefield.data.sources import find_files
from forgefield.data.splits import PARTS
from forgefield.data.store import Store, is_store
from forgefield.errors import MachineError, UserError
from forgefield.files import read_json, sha256_of, write_json
from forgefield.models.potential import load_potential, save_potential

WEIGHTS = ("model.json", "weights.safetensors")
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
    """Make what is missing of the inputs, or was made from something else.

    Raises:
        UserError: any mistake in the data, the model, or what they are together.
    """
    record = paths.output / "inputs.json"
    dataset, model = config.datasets[run.dataset], config.models[run.model]
    if "data" not in paths.given:
        files = _data_files(dataset)
        listed = [Path(dataset.split.file).expanduser()] if dataset.split.file else []
        made = _made_from(dataset, *files.values(), listed)
        _make(record, paths.data, made, lambda: _make_data(run.dataset, dataset, files, paths.data))
    if "model" not in paths.given:
        made = _made_from(model, _foundation_files(model))
        _make(record, paths.model, made, lambda: _make_foundation(run.model, model, paths.model))
    if "statistics" not in paths.given:
        train = paths.data / "train.h5"
        made = _made_from(run.statistics, [train, *(paths.model / name for name in WEIGHTS)])
        words = (paths.data, paths.model, run.statistics, paths.statistics)
        _make(record, paths.statistics, made, lambda: _apart(_make_statistics, *words))


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


def _make(record: Path, product: Path, made: Made, make: Callable[[], object]) -> None:
    """Call ``make`` unless the product is there and was made from the same."""
    before = read_json(record) if record.exists() else {}
    if before.get(product.stem) == made and product.exists():
        return
    make()
    write_json(record, before | {product.stem: made})


def _data_files(dataset: DatasetConfig) -> dict[str, list[Path]]:
    """The files of each part, or of all parts together."""
    by_part = dataset.split.shares if dataset.split.method == "files" else {"all": dataset.source}
    return {part: find_files(source) for part, source in by_part.items()}


def _make_data(name: str, dataset: DatasetConfig, files: dict[str, list[Path]], output: Path) -> None:
    """Convert reference files; link stores, which are as they should be."""
    stores = {part: [path for path in paths if is_store(path)] for part, paths in files.items()}
    if not any(stores.values()):
        convert_dataset(name, dataset, output, complete=True)
        return
    for part, paths in files.items():
        if part not in PARTS or len(paths) > 1 or paths != stores[part]:
            odd = next((path for path in paths if path not in stores[part]), paths[0])
            raise UserError(f"{odd}: stores are taken as they are, so give one for each of {', '.join(PARTS)}")
        with Store(paths[0]):
            pass
    output.mkdir(parents=True, exist_ok=True)
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


def _make_foundation(name: str, model: ModelConfig, output: Path) -> None:
    """Import a model; copy one that forgefield has made and so checked, unless more is asked of it."""
    directory = Path(model.foundation).expanduser() if model.foundation else None
    if directory is None or not (directory / "model.json").exists() or model.sha256 or model.head:
        _apart(_import, name, model, output)
        return
    potential = load_potential(directory)
    if potential.architecture != model.architecture:
        raise UserError(
            f"models.{name}.foundation: {directory} is a model of architecture {potential.architecture}, but "
            f"architecture is {model.architecture}; choose another model or architecture: {potential.architecture}"
        )
    save_potential(potential, output)


def _import(name: str, model: ModelConfig, output: Path) -> None:
    from forgefield.models.foundation import import_model

    import_model(name, model, output)


def _make_statistics(data: Path, foundation: Path, config: StatisticsConfig, output: Path) -> None:
    from forgefield.statistics import log_lines
    from forgefield.statistics.compute import compute_statistics, require_known_elements
    from forgefield.trainers.runtime import configure_jax

    with Store(data / "valid.h5") as valid:
        require_known_elements(valid, load_potential(foundation), foundation)
    configure_jax(precision="float64")
    content = compute_statistics(data / "train.h5", foundation, config)
    write_json(output, content)
    for line in log_lines(content):
        print(line)


def _apart(function: Callable[..., None], *arguments: Any) -> None:
    """Call in a process of its own, which gives back its devices and their memory when it ends."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise MachineError("a process of the preparation was killed; is there memory enough? Start again") from None
