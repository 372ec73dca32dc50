"""Names that other programs, FlashCart above all, have for our keys; each can stand at the top level of a run file."""

from collections.abc import Mapping
from typing import Any

from forgefield.errors import UserError

ALIASES = {
    "train_path": "datasets.{dataset}.split.train",
    "valid_path": "datasets.{dataset}.split.valid",
    "test_path": "datasets.{dataset}.split.test",
    "foundation": "models.{model}.foundation",
    "r_max": "models.{model}.r_max",
    "train_batch_size": "training.batch",
    "eval_batch_size": "training.eval_batch",
    "dynamic_batching": "training.batching",
    "max_epochs": "training.epochs",
}
"""Alias -> key; {dataset} and {model} are the names of the run's."""

PATHS = [alias for alias, key in ALIASES.items() if ".split." in key]
BATCHING = {True: "dynamic", False: "fixed"}
DATASET, MODEL = "data", "model"
"""Names of the dataset and the model that an alias is about, where the run file has none of its own."""


def key_of(alias: str, names: Mapping[str, str]) -> str:
    """The full key that an alias stands for; any other key as it is."""
    return ALIASES.get(alias, alias).format(**names)


def value_of(alias: str, value: Any) -> Any:
    """What the key's value is where the alias has this one."""
    if alias == "dynamic_batching":
        if not isinstance(value, bool):
            raise UserError(f"dynamic_batching: expected true or false, found {value!r}")
        return BATCHING[value]
    return value


def run_names(content: Mapping[str, Any]) -> dict[str, str]:
    """The names of the dataset and the model that aliases are about: the run's, or the only one there is."""
    names = {}
    for key, default in (("dataset", DATASET), ("model", MODEL)):
        entries = content.get(f"{key}s")
        only = next(iter(entries)) if isinstance(entries, Mapping) and len(entries) == 1 else default
        names[key] = str(content.get(key) or only)
    return names


def expand(content: dict[str, Any], names: Mapping[str, str]) -> None:
    """Put the value of each alias under its key.

    Raises:
        UserError: an alias and its key are both given.
    """
    for alias in [alias for alias in ALIASES if alias in content]:
        key = key_of(alias, names)
        if is_given(content, key):
            raise UserError(f"{alias} and {key} are both given, but mean the same key; remove one")
        put(content, key, value_of(alias, content.pop(alias)), alias)


def complete(content: dict[str, Any], names: Mapping[str, str], used: set[str]) -> None:
    """Name the dataset and the model, and the files as the way to split, where aliases have left that to us.

    Raises:
        UserError: not all data paths are given that training needs.
    """
    if used.intersection(PATHS):
        missing = [path for path in PATHS if not is_given(content, key_of(path, names))]
        if needed := [path for path in missing if path != "test_path"]:
            raise UserError(
                f"{needed[0]}: missing; expected a file for train_path and for valid_path, and for test_path where "
                "`forgefield test` is to test on it"
            )
        for path in missing:
            put(content, key_of(path, names), None, path)
        put(content, f"datasets.{names['dataset']}.split.method", "files", "train_path")
    if used:
        for key, name in names.items():
            entries = content.get(f"{key}s")
            if isinstance(entries, Mapping) and name in entries:
                content.setdefault(key, name)


def is_given(content: Mapping[str, Any], key: str) -> bool:
    """Whether a dotted key has a value."""
    *sections, last = key.split(".")
    for section in sections:
        content = content.get(section) or {}
        if not isinstance(content, Mapping):
            return False
    return last in content


def put(content: dict[str, Any], key: str, value: Any, given: str) -> None:
    """Set a dotted key; ``given`` is what messages say that the user wrote."""
    *sections, last = key.split(".")
    for depth, name in enumerate(sections):
        if content.get(name) is None:
            content[name] = {}
        content = content[name]
        if not isinstance(content, dict):
            raise UserError(f"{given!r}: {'.'.join(sections[: depth + 1])} is not a section; it is {content!r}")
    content[last] = value
