"""Each input of a run, made by the function of its stage."""

import os
import sys
from pathlib import Path

from forgefield.config import DatasetConfig, ModelConfig
from forgefield.config.evaluation import StatisticsConfig
from forgefield.data.convert import convert_dataset, in_one_line
from forgefield.data.sources.workers import available_cores
from forgefield.data.splits import PARTS
from forgefield.data.store import Store, is_store
from forgefield.errors import UserError
from forgefield.files import write_json
from forgefield.models.foundation import import_model
from forgefield.models.inference import Engine
from forgefield.models.potential import Potential, load_potential, save_potential
from forgefield.statistics import log_lines
from forgefield.statistics.compute import compute_statistics, require_known_elements


def make_data(name: str, dataset: DatasetConfig, files: dict[str, list[Path]], output: Path) -> None:
    """Convert reference files; link stores, which are as they should be."""
    stores = {part: [path for path in paths if is_store(path)] for part, paths in files.items()}
    if not any(stores.values()):
        report = convert_dataset(name, dataset, output, complete=True, jobs=available_cores())
        print(in_one_line(report, output), file=sys.stderr, flush=True)
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
        link = output / f".{part}.h5.{os.getpid()}.tmp"  # by its name a leftover, where this is killed
        link.symlink_to(path.resolve())
        os.replace(link, output / f"{part}.h5")


def make_foundation(name: str, model: ModelConfig, output: Path, engine: Engine) -> None:
    """Import a model; copy one that forgefield has made and so checked, unless more is asked of it."""
    directory = Path(model.foundation).expanduser() if model.foundation else None
    if directory is None or not (directory / "model.json").exists() or model.sha256 or model.head:
        import_model(name, model, output, engine)
        return
    save_potential(require_architecture(f"models.{name}.foundation: {directory}", directory, name, model), output)


def require_architecture(where: str, directory: Path, name: str, model: ModelConfig) -> Potential:
    """The potential in a directory, which must be of the architecture that the run's model is said to have."""
    potential = load_potential(directory)
    if potential.architecture != model.architecture:
        raise UserError(
            f"{where} is a model of architecture {potential.architecture}, but models.{name}.architecture is "
            f"{model.architecture}; choose another model or write architecture: {potential.architecture}"
        )
    return potential


def make_statistics(data: Path, foundation: Path, config: StatisticsConfig, output: Path, engine: Engine) -> None:
    with Store(data / "valid.h5") as valid:
        require_known_elements(valid, load_potential(foundation), foundation)
    if engine == "jax":
        from forgefield.trainers.runtime import configure_jax

        configure_jax(precision="float64")
    content = compute_statistics(data / "train.h5", foundation, config, engine)
    write_json(output, content)
    for line in log_lines(content):
        print(line)
