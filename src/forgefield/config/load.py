"""From a YAML file, text or mapping, with overrides, to a checked configuration."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from forgefield.config import aliases
from forgefield.config.messages import first_problem
from forgefield.config.run import Config
from forgefield.config.yaml import parse_yaml, read_yaml
from forgefield.errors import UserError, named

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
    changes = [_change(override) for override in overrides]
    names = aliases.run_names(content | {key: value for key, value, _ in changes if key in ("dataset", "model")})
    if folder is not None:
        _add_entries(content, Path(folder), where)
    with named(where):
        used = _apply(content, changes, names)
    try:
        config = Config.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{where}: {_as_written(first_problem(error, Config), used)}") from None
    with named(where):
        _check_runs(config)
    return config


def _check_runs(config: Config) -> None:
    """Every run must be valid. A configuration that names no run is one: a single stage may need nothing else."""
    if config.runs is None and (config.dataset is None or config.model is None):
        return
    pairs: dict[str, tuple[str, str]] = {}
    places: dict[str, str] = {}
    for name in config.run_names:
        run = config.run(name)
        pair = (run.dataset, run.model)
        if pairs.setdefault("-".join(pair), pair) != pair:
            raise UserError(
                f"runs.{name}: the names {'-'.join(pair)} can be read in two ways; rename a dataset or a model"
            )
        if run.output_path and (other := places.setdefault(run.output_path, name)) != name:
            raise UserError(f"runs.{name}: output_path is {run.output_path}, as of run {other}; give each its own")


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


Change = tuple[str, Any, str]  # dotted key, value, and the override as it was written


def _apply(content: dict[str, Any], changes: Sequence[Change], names: Mapping[str, str]) -> dict[str, str]:
    """Resolve aliases and make changes; the aliases that were used, by the key they stand for."""
    used = {alias: aliases.key_of(alias, names) for alias in aliases.ALIASES if alias in content}
    aliases.expand(content, names)
    seen: dict[str, str] = {}
    for key, value, override in changes:
        full = aliases.key_of(key, names)
        if seen.setdefault(full, key) != key:
            raise UserError(f"{seen[full]} and {key} are both given, but mean the same key; remove one")
        if key in aliases.ALIASES:
            used[key] = full
        aliases.put(content, full, aliases.value_of(key, value), override)
    aliases.complete(content, names, set(used))
    return {key: alias for alias, key in used.items()}


def _change(override: str) -> Change:
    key, equals, value = override.partition("=")
    if not equals or not all(key.split(".")):
        raise UserError(f"{override!r}: expected KEY=VALUE, such as training.lr=1e-3")
    return key, parse_yaml(value, override), override


def _as_written(problem: str, used: Mapping[str, str]) -> str:
    """A message about a key with the alias by which the user gave it."""
    key, colon, rest = problem.partition(":")
    return f"{used[key]} ({key}){colon}{rest}" if key in used else problem
