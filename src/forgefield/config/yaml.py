"""Reading YAML as people write it: ``1e-3`` is a number, ``No`` is nobelium, and a key given twice is an error."""

import re
from pathlib import Path
from typing import Any

import yaml

from forgefield.config.base import NUMBER
from forgefield.errors import UserError


class _Loader(yaml.SafeLoader):
    """SafeLoader with the numbers and booleans of YAML 1.2, without dates and without repeated keys."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.composer.ComposerError(None, None, f"{key.value} is given twice", key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return node


_REPLACED = {f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "timestamp")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(f"^{NUMBER.pattern}$"), list("-+.0123456789"))


def read_yaml(path: Path) -> Any:
    """The content of a YAML file.

    Raises:
        UserError: the file is missing or is not YAML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; give the path of a YAML configuration") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not readable ({error})") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str) -> Any:
    """The content of YAML or JSON text; ``where`` names it in errors."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" line {mark.line + 1}" if mark else ""
        raise UserError(f"{where}{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{where}: not valid YAML: {error}") from None
