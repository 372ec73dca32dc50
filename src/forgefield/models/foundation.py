"""The import stage: a foundation model, or a fresh one, as a checked potential in safe formats."""

import difflib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgefield.data.sources.downloads import fetch
from forgefield.errors import UserError, named
from forgefield.files import atomic_directory, sha256_of, write_json
from forgefield.models.inference import Engine
from forgefield.models.mace.initial import from_scratch
from forgefield.models.potential import Potential, load_potential, save_potential

if TYPE_CHECKING:
    from forgefield.config.model import ModelConfig

NEEDED = {"mace": ("torch", "mace"), "flashcart": ("torch", "flashcart"), "python": ("torch",)}
"""Packages by architecture."""
EXPECTED = {
    "mace": "a .model file or a forgefield directory",
    "flashcart": "a FlashCart directory with model_config.yaml and model.pt, or a forgefield directory",
    "python": "a forgefield directory",
}
"""What ``foundation`` can be, by architecture."""
UNCHECKED = {"check": None, "reason": "random initial parameters"}


def import_model(name: str, config: "ModelConfig", output: Path, engine: Engine = "jax") -> None:
    """Write ``output``, a potential's directory with ``import.json``, whole or not at all.

    A foundation model is compared with the program that it came from, mace-torch or flashcart, in float64 on sample
    structures; the differences go into ``import.json``. ``name`` is the model's key under ``models``;
    ``engine`` computes a MACE for this comparison.

    Raises:
        UserError: the file is missing, not trusted, of an unsupported kind, or its import is not exact.
    """
    if config.foundation is None:
        potential, report = _from_scratch(name, config)
    else:
        potential, report = _from_foundation(name, config, engine)
    with atomic_directory(output) as directory:
        save_potential(potential, directory)
        write_json(directory / "import.json", {"model": name, "source": potential.source} | report)


def _from_scratch(name: str, config: "ModelConfig") -> tuple[Potential, dict[str, Any]]:
    if config.architecture == "mace":
        return from_scratch(config), UNCHECKED
    _require_packages(name, config.architecture)
    if config.architecture == "flashcart":
        from forgefield.models.flashcart.exchange import initial_potential

        with named(f"models.{name}"):
            return initial_potential(config), UNCHECKED
    from forgefield.models.plugin.building import initial_potential
    from forgefield.models.plugin.check import check_plugin

    with named(f"models.{name}"):
        potential = initial_potential(config)
    return potential, check_plugin(f"models.{name}", potential)


def _from_foundation(name: str, config: "ModelConfig", engine: Engine) -> tuple[Potential, dict[str, Any]]:
    path = _foundation_path(name, config)
    weights = _weights_file(name, config, path)
    actual = sha256_of(weights)
    if path.is_file():
        check_trusted(name, path, config.sha256, actual)
    elif config.sha256 not in (None, actual):
        raise UserError(f"models.{name}.sha256 is {config.sha256}, but {weights} has {actual}; correct or remove it")
    _require_packages(name, config.architecture)
    if path.is_file():
        from forgefield.models.mace.torch_parity import checked_pickle

        potential, report = checked_pickle(name, path, config.head, engine)
    elif weights.suffix == ".pt":
        from forgefield.models.flashcart.checkpoint import checked_checkpoint

        potential, report = checked_checkpoint(name, path)
    else:
        potential, report = _checked_directory(name, config, path, engine)
    source = {"kind": "foundation", "name": path.name, "sha256": actual}
    kept = {key: value for key, value in potential.source.items() if key == "mace_torch"}
    return replace(potential, source=source | kept), report


def _foundation_path(name: str, config: "ModelConfig") -> Path:
    is_url = config.foundation.startswith(("http://", "https://"))
    path = fetch(config.foundation, config.sha256) if is_url else Path(config.foundation).expanduser()
    if not path.exists():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
        hint = f"; did you mean {path.parent / near[0]}?" if near else f"; give {EXPECTED[config.architecture]}"
        raise UserError(f"models.{name}.foundation: {path} does not exist{hint}")
    return path


def _weights_file(name: str, config: "ModelConfig", path: Path) -> Path:
    """The file with the weights: ``path`` itself, or in a directory of forgefield or FlashCart."""
    where, expected = f"models.{name}.foundation: {path}", EXPECTED[config.architecture]
    if path.is_file():
        if config.architecture != "mace":
            raise UserError(f"{where} is a file, expected {expected}; for a MACE model write architecture: mace")
        return path
    if (path / "model_config.yaml").exists() and not (path / "model.json").exists():
        if config.architecture != "flashcart":
            raise UserError(f"{where} is a FlashCart checkpoint, expected {expected}; write architecture: flashcart")
        weights = path / "model.pt"
    else:
        weights = path / "weights.safetensors"
    if not weights.exists():
        raise UserError(f"{where} holds no {weights.name}; it is not {expected}")
    return weights


def _checked_directory(
    name: str, config: "ModelConfig", path: Path, engine: Engine
) -> tuple[Potential, dict[str, Any]]:
    """What forgefield wrote, and the report of its check."""
    potential, where = load_potential(path), f"models.{name}: {path}"
    if potential.architecture != config.architecture:
        raise UserError(
            f"{where} is of architecture {potential.architecture!r}, expected {config.architecture!r}; "
            f"write architecture: {potential.architecture}"
        )
    if config.architecture == "mace":
        from forgefield.models.mace.torch_parity import checked_directory

        return potential, checked_directory(name, path, potential, config.head, engine)
    if config.architecture == "flashcart":
        from forgefield.models.flashcart.checkpoint import check_parity

        return potential, check_parity(where, potential)
    from forgefield.models.plugin.check import check_plugin

    return potential, check_plugin(where, potential)


def check_trusted(name: str, path: Path, listed: str | None, actual: str) -> None:
    """Refuse a pickled model unless its sha256 is listed: reading a pickle can run any code in it."""
    if listed == actual:
        return
    found = f"lists sha256 {listed}, which is another file's" if listed else "lists no sha256 for it"
    raise UserError(
        f"{path} is a pickled model, and reading one can run any code hidden in it, but models.{name} {found}; "
        f"if you trust this file, add this line under models.{name}: `sha256: {actual}`"
    )


def _require_packages(name: str, architecture: str) -> None:
    """Some models are made or checked by packages that an installation for JAX alone lacks."""
    if missing := [package for package in NEEDED[architecture] if not find_spec(package)]:
        raise UserError(f"models.{name} needs {missing[0]} for its import; pip install 'forgefield[fabric]'")
