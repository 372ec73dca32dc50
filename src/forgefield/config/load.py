"""From a YAML file, text or mapping, with overrides, to a checked configuration."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from forgefield.config.messages import first_problem
from forgefield.config.run import Config
from forgefield.config.yaml import parse_yaml, read_yaml
from forgefield.errors import UserError

FOLDERS = ("datasets", "models")


def load_config(
    source: Path | str | Mapping[str, Any], overrides: Sequence[str] = (), *, folder: Path | str | None = None
) -> Config:
    """Read and check a configuration.

    Args:
        source: the path of a YAML file; YAML or JSON text (a string with a line break, ``{`` or ``: ``); or a mapping.
        overrides: changes such as ``training.lr=1e-3``, dotted key and YAML value.
        folder: where ``datasets/NAME.yaml`` and ``models/NAME.yaml`` are looked for. None: beside the file that
            ``source`` names, and nowhere for text and mappings.

    Raises:
        UserError: in one line, the file and key that are wrong, what was expected and the nearest valid name.
    """
    where = "config"
    if isinstance(source, Mapping):
        content = _plain(source)
    elif isinstance(source, str) and any(mark in source for mark in ("\n", "{", ": ")):
        content = _mapping(parse_yaml(source, where), where)
    else:
        where = str(source)
        content = _mapping(read_yaml(Path(source)), where)
        folder = Path(source).parent if folder is None else folder
    if folder is not None:
        _add_entries(content, Path(folder), where)
    for override in overrides:
        _apply(content, override)
    try:
        config = Config.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{where}: {first_problem(error, Config)}") from None
    try:
        _check_runs(config)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return config


def _check_runs(config: Config) -> None:
    """Every run must be valid. A configuration that names no run is one: a single stage may need nothing else."""
    if config.runs is None and (config.dataset is None or config.model is None):
        return
    pairs: dict[str, tuple[str, str]] = {}
    for name in config.run_names:
        run = config.run(name)
        pair = (run.dataset, run.model)
        if pairs.setdefault("-".join(pair), pair) != pair:
            raise UserError(
                f"runs.{name}: the names {'-'.join(pair)} can be read in two ways; rename a dataset or a model"
            )


def _mapping(content: Any, where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        found = "nothing" if content is None else repr(content)
        raise UserError(f"{where}: expected keys such as dataset and model, found {found[:60]}")
    return content


def _plain(value: Any) -> Any:
    """A copy with plain dictionaries and lists."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _add_entries(content: dict[str, Any], folder: Path, where: str) -> None:
    for kind in FOLDERS:
        for path in sorted((folder / kind).glob("*.yaml")):
            entries = content.get(kind)
            entries = {} if entries is None else entries
            if not isinstance(entries, dict):
                return
            if path.stem in entries:
                raise UserError(f"{path}: {kind}.{path.stem} is already defined in {where}; remove one of them")
            content[kind] = entries | {path.stem: _mapping(read_yaml(path), str(path))}


def _apply(content: dict[str, Any], override: str) -> None:
    """Set one dotted key."""
    key, equals, value = override.partition("=")
    if not equals or not all(key.split(".")):
        raise UserError(f"{override!r}: expected KEY=VALUE, such as training.lr=1e-3")
    *sections, last = key.split(".")
    target = content
    for depth, name in enumerate(sections):
        if target.get(name) is None:
            target[name] = {}
        target = target[name]
        if not isinstance(target, dict):
            raise UserError(f"{override!r}: {'.'.join(sections[: depth + 1])} is not a section; it is {target!r}")
    target[last] = parse_yaml(value, override)
