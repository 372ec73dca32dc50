"""The import stage: a foundation model, or a fresh one, as a checked potential in safe formats."""

import difflib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ase.data import atomic_numbers

from forgefield.data.sources.downloads import fetch
from forgefield.errors import UserError
from forgefield.files import atomic_directory, sha256_of, write_json
from forgefield.models.mace.initial import initial_potential
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.potential import Potential, save_potential

if TYPE_CHECKING:
    from forgefield.config.model import ModelConfig


def import_model(name: str, config: "ModelConfig", output: Path) -> None:
    """Write ``output``, a potential's directory with ``import.json``, whole or not at all.

    A foundation model is compared with mace-torch in float64 on sample structures; the differences go into
    ``import.json``. ``name`` is the model's key under ``models`` in the configuration.

    Raises:
        UserError: the file is missing, not trusted, of an unsupported kind, or its import is not exact.
    """
    if config.foundation is None:
        potential, report = from_scratch(config), {"check": None, "reason": "random initial parameters"}
    else:
        potential, report = _from_foundation(name, config)
    with atomic_directory(output) as directory:
        save_potential(potential, directory)
        write_json(directory / "import.json", {"model": name, "source": potential.source} | report)


def from_scratch(config: "ModelConfig") -> Potential:
    """A MACE model with random parameters: a first layer without, later layers with a residual connection."""
    residual = ("RealAgnosticResidualInteractionBlock",) * (config.n_interactions - 1)
    settings = MaceSettings(
        r_max=config.r_max,
        hidden_channels=config.hidden_channels,
        hidden_l_max=(config.hidden_l_max,) * (config.n_interactions - 1) + (0,),
        l_max=config.l_max,
        correlation=(config.correlation,) * config.n_interactions,
        interactions=("RealAgnosticInteractionBlock", *residual),
        n_bessel=config.n_bessel,
        polynomial_cutoff=config.polynomial_cutoff,
        radial_mlp=tuple(config.radial_mlp),
        mlp_channels=config.mlp_channels,
    )
    return initial_potential([atomic_numbers[symbol] for symbol in config.elements], settings, config.seed)


def _from_foundation(name: str, config: "ModelConfig") -> tuple[Potential, dict[str, Any]]:
    is_url = config.foundation.startswith(("http://", "https://"))
    path = fetch(config.foundation, config.sha256) if is_url else Path(config.foundation).expanduser()
    if not path.exists():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*")], n=1)
        hint = f"; did you mean {path.parent / near[0]}?" if near else "; give a .model file or a forgefield directory"
        raise UserError(f"models.{name}.foundation: {path} does not exist{hint}")
    weights = path / "weights.safetensors" if path.is_dir() else path
    if not weights.exists():
        raise UserError(f"models.{name}.foundation: {path} holds no weights.safetensors; it is not a forgefield model")
    actual = sha256_of(weights)
    if path.is_file():
        check_trusted(name, path, config.sha256, actual)
    elif config.sha256 not in (None, actual):
        raise UserError(f"models.{name}.sha256 is {config.sha256}, but {weights} has {actual}; correct or remove it")
    _require_mace_torch(name)
    from forgefield.models.mace.torch_parity import checked_directory, checked_pickle

    if path.is_dir():
        potential, report = checked_directory(name, path, config.head)
    else:
        potential, report = checked_pickle(name, path, config.head)
    source = {"kind": "foundation", "name": path.name, "sha256": actual}
    kept = {key: value for key, value in potential.source.items() if key == "mace_torch"}
    return replace(potential, source=source | kept), report


def check_trusted(name: str, path: Path, listed: str | None, actual: str) -> None:
    """Refuse a pickled model unless its sha256 is listed: reading a pickle can run any code in it."""
    if listed == actual:
        return
    found = f"lists sha256 {listed}, which is another file's" if listed else "lists no sha256 for it"
    raise UserError(
        f"{path} is a pickled model, and reading one can run any code hidden in it, but models.{name} {found}; "
        f"if you trust this file, add this line under models.{name}: `sha256: {actual}`"
    )


def _require_mace_torch(name: str) -> None:
    """The check of a foundation model needs mace-torch, which an installation for JAX alone lacks."""
    if not find_spec("torch") or not find_spec("mace"):
        raise UserError(f"models.{name}.foundation needs mace-torch for its check; pip install 'forgefield[fabric]'")
