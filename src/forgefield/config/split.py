"""``datasets.NAME.split``: which structures go where."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from forgefield.config.base import Section, Seed, number


def _share(value: Any) -> Any:
    """A count, a fraction, or a list of paths."""
    value = number(value)
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and value and all(isinstance(path, str) for path in value):
        return list(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float) and (0 < value < 1 or (value > 1 and isinstance(value, int))):
        return value
    raise ValueError(f"expected a count above 1, a fraction between 0 and 1, or paths, found {value!r}")


def _share_or_none(value: Any) -> Any:
    return None if value is None else _share(value)


_SHARE_SCHEMA = [
    {"type": "integer", "exclusiveMinimum": 1},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "string"},
    {"type": "array", "items": {"type": "string"}, "minItems": 1},
]
Share = Annotated[int | float | list[str], BeforeValidator(_share), WithJsonSchema({"anyOf": _SHARE_SCHEMA})]
OptionalShare = Annotated[
    int | float | list[str] | None,
    BeforeValidator(_share_or_none),
    WithJsonSchema({"anyOf": [*_SHARE_SCHEMA, {"type": "null"}]}),
]


class Split(Section):
    """Which structures are trained on, which choose the best model, and which are only tested on."""

    method: Literal["blocks", "random", "group", "files", "frames"] = "blocks"
    """`blocks`: train, valid and test are blocks of the source in its order, so that frames near in time stay together;
    `random`: drawn at random; `group`: structures that agree in `by` stay in one part; `files`: each from files of its
    own; `frames`: by the frame numbers in `file`. `docs/splits.md` tells which suits which data."""

    train: Share = 0.8
    """Training structures: a count above 1, or a fraction of the source; for method `files` a path, a glob or a list of
    them."""

    valid: Share = 0.1
    """Validation structures, which choose the best model: likewise."""

    test: OptionalShare = 0.1
    """Test structures, which nothing but the final metrics sees: likewise. `null`: none, only for method `files` and
    `forgefield train my_run.yaml`."""

    seed: Seed = 0
    """Seed of methods `random` and `group`."""

    by: str | None = None
    """What makes a group, for method `group`: `composition` (the chemical formula), `file`, or a key of the source, as
    `config_type` or the name of a molecule may be."""

    stratify: bool = False
    """For method `random`: every part gets structures of all elements and sizes in the same proportion."""

    file: str | None = None
    """For method `frames`: a copy of the `conversion.json` of an earlier conversion of the source, or JSON such as
    `{"train": "0-79, 90", "valid": [80, 81], "test": "82-89"}`."""

    @property
    def shares(self) -> dict[str, int | float | list[str]]:
        """The parts by name; `test` may be missing."""
        shares = {"train": self.train, "valid": self.valid, "test": self.test}
        return {part: share for part, share in shares.items() if share is not None}

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        paths = [part for part, share in self.shares.items() if isinstance(share, list)]
        if self.method == "files" and len(paths) < len(self.shares):
            missing = ", ".join(part for part in self.shares if part not in paths)
            raise ValueError(f"method files needs a path for each of train, valid and test; give one for {missing}")
        if self.method != "files" and paths:
            raise ValueError(f"{paths[0]} is a path, but method is {self.method}; write a number, or method: files")
        if self.method != "files" and self.test is None:
            raise ValueError(f"test is null, but method is {self.method}; write a number, or method: files")
        for key, method in {"by": "group", "file": "frames", "stratify": "random"}.items():
            if getattr(self, key) and self.method != method:
                raise ValueError(f"{key} is for method {method}, but method is {self.method}; remove {key}")
            if not getattr(self, key) and self.method == method and key != "stratify":
                raise ValueError(f"method {method} needs {key}; add it")
        if self.seed and self.method not in ("random", "group"):
            raise ValueError(f"seed is for methods random and group, but method is {self.method}; remove seed")
        total = sum(share for share in self.shares.values() if isinstance(share, float))
        if total > 1 + 1e-9:
            raise ValueError(f"the fractions of train, valid and test add up to {total:g}; expected at most 1")
        return self
