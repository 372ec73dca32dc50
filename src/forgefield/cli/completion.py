"""What a shell completes by TAB, beside verbs, options and files: keys of the configuration, and names in it."""

from collections.abc import Iterator
from typing import get_args

import typer
from pydantic import BaseModel

from forgefield.config import load_config
from forgefield.config.aliases import ALIASES
from forgefield.config.run import Config
from forgefield.errors import UserError

CONFIG = "config/config.yaml"


def config_keys(incomplete: str) -> list[str]:
    """Keys that begin so; none for an empty word, where a file may be meant."""
    return [f"{key}=" for key in (*ALIASES, *_keys(Config)) if incomplete and key.startswith(incomplete)]


def _keys(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Dotted keys of all that is no section, in the order of the sections."""
    for name, field in section.model_fields.items():
        inner = next((kind for kind in _kinds(field.annotation) if issubclass(kind, BaseModel)), None)
        if inner:
            yield from _keys(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _kinds(annotation: object) -> list[type]:
    return [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]


def run_names(context: typer.Context, incomplete: str) -> list[str]:
    """The runs of the configuration."""
    config = _config(context)
    return [name for name in (config.run_names if config else []) if name.startswith(incomplete)]


def dataset_names(context: typer.Context, incomplete: str) -> list[str]:
    """The datasets of the configuration."""
    config = _config(context)
    return [name for name in (config.datasets if config else []) if name.startswith(incomplete)]


def model_names(context: typer.Context, incomplete: str) -> list[str]:
    """The models of the configuration."""
    config = _config(context)
    return [name for name in (config.models if config else []) if name.startswith(incomplete)]


def _config(context: typer.Context) -> Config | None:
    """The configuration that the words so far name, if it can be read."""
    words = [*(context.params.get("words") or ()), *context.args]
    files = [word for word in words if word.endswith((".yaml", ".yml"))]
    try:
        return load_config(context.params.get("config") or (files or [CONFIG])[0])
    except UserError:
        return None
