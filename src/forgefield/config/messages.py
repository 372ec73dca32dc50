"""One line for each mistake: the full key, what was expected, what was found and the nearest valid key."""

import difflib
import re
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from forgefield.config.aliases import ALIASES
from forgefield.config.base import NAME, OBJECT, SHA256, URL

SYNONYMS = {
    "learning_rate": "lr",
    "batch_size": "batch",
    "valid_batch_size": "eval_batch",
    "max_epochs": "epochs",
    "max_num_epochs": "epochs",
    "n_epochs": "epochs",
    "num_epochs": "epochs",
    "patience": "early_stopping",
    "scheduler": "schedule",
    "clip_grad": "clip_norm",
    "gradient_clip": "clip_norm",
    "gradient_clipping": "clip_norm",
    "ema_decay": "ema",
    "accumulate_grad_batches": "micro_batches",
    "gradient_accumulation_steps": "micro_batches",
    "stable_steps": "constant_steps",
    "dtype": "precision",
    "default_dtype": "precision",
    "random_seed": "seed",
    "cutoff": "r_max",
    "max_ell": "l_max",
    "num_channels": "hidden_channels",
    "num_interactions": "n_interactions",
    "num_radial_basis": "n_bessel",
    "num_bessel": "n_bessel",
    "radial_MLP": "radial_mlp",
    "species": "elements",
    "atomic_numbers": "elements",
    "foundation_model": "foundation",
    "checksum": "sha256",
    "E0s": "energy_shifts",
    "path": "source",
    "file": "source",
    "filename": "source",
    "force": "forces",
    "positions": "length",
    "validation": "valid",
    "num_devices": "devices",
    "gpus": "devices",
    "nodes": "n_nodes",
    "num_nodes": "n_nodes",
    "engine": "backend",
}
"""What other programs of the field call a key -> what it is called here."""

PATTERNS = {
    NAME: "a name of letters, digits, _, + and -",
    OBJECT: "MODULE:OBJECT",
    SHA256: "64 hexadecimal digits",
    URL: "the address of a file, http://... or https://...",
}

Location = tuple[int | str, ...]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence: the nearest of the known words, or all of them where none is near."""
    words = [str(k) for k in known]
    near = difflib.get_close_matches(word, words, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; expected one of: {', '.join(words)}" if words else ""


def first_problem(error: ValidationError, model: type[BaseModel], prefix: str = "") -> str:
    """What is wrong first, in one line, and how many more mistakes there are.

    Args:
        error: raised by validating ``model``.
        model: the model of the outermost section.
        prefix: where that section is, such as ``runs.NAME.``.
    """
    problems = error.errors(include_url=False)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return _sentence(problems[0], model, prefix) + more


def _sentence(problem: dict[str, Any], model: type[BaseModel], prefix: str) -> str:
    location, kind = problem["loc"], problem["type"]
    key = prefix + ".".join(str(part) for part in location if part != "[key]")
    if kind == "extra_forbidden":
        return f"{key}: unknown key{_nearest_key(location, model, prefix)}"
    if kind == "missing":
        return f"{key}: missing; expected {_section(location[:-1], model).model_fields[location[-1]].description}"
    if kind == "value_error":
        return f"{key}: {problem['ctx']['error']}" if location else f"{prefix}{problem['ctx']['error']}"
    return f"{key}: expected {_expected(problem)}, found {_shown(problem['input'])}{_nearest_choice(problem)}"


def _expected(problem: dict[str, Any]) -> str:
    """What pydantic wanted, in words."""
    context = problem.get("ctx", {})
    kinds = {
        "int": "a whole number",
        "float": "a number",
        "finite": "a finite number",
        "bool": "true or false",
        "string": "text",
        "list": "a list",
        "dict": "a section of keys",
        "model": "a section of keys",
    }
    bounds = {
        "greater_than": "a number above {gt:g}",
        "greater_than_equal": "a number of at least {ge:g}",
        "less_than": "a number below {lt:g}",
        "less_than_equal": "a number of at most {le:g}",
        "literal_error": "{expected}",
        "string_pattern_mismatch": PATTERNS.get(context.get("pattern"), "{pattern}"),
        "too_short": "at least {min_length} entry",
    }
    if problem["type"] in bounds:
        return bounds[problem["type"]].format(**context)
    return kinds.get(problem["type"].split("_")[0], problem["msg"])


def _shown(value: Any) -> str:
    """The value as YAML shows it, shortened."""
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest_choice(problem: dict[str, Any]) -> str:
    if problem["type"] != "literal_error":
        return ""
    choices = problem["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
    near = difflib.get_close_matches(str(problem["input"]), choices, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _nearest_key(location: Location, model: type[BaseModel], prefix: str) -> str:
    """The key of the same section, or of any other, that an unknown one seems to mean."""
    *parents, word = location
    section = _section(tuple(parents), model)
    here = prefix + "".join(f"{part}." for part in parents)
    own = {name: here + name for name in section.model_fields}
    if not here and "datasets" in own:  # the whole configuration
        own |= {alias: alias for alias in ALIASES}
    elsewhere = {path.rpartition(".")[2]: prefix + path for path in key_paths(model)}
    meant = SYNONYMS.get(str(word), str(word))
    for paths in (own, elsewhere):
        if meant in paths:
            return f"; did you mean {paths[meant]}?"
    near = difflib.get_close_matches(str(word), own, n=1)
    return f"; did you mean {own[near[0]]}?" if near else f"; expected one of: {', '.join(own)}"


def with_full_keys(text: str, prefix: str, model: type[BaseModel]) -> str:
    """A message of code that knows one section, with the section's keys as they stand in the whole configuration.

    Args:
        text: in which keys of keys stand as ``keys.energy``, and others behind "set", as in ``set format``.
        prefix: where the section is, such as ``datasets.NAME``.
        model: of the section.
    """
    paths = [re.escape(path) for path in key_paths(model)]
    inner, own = ("|".join(p for p in paths if ("." in p) == is_inner) for is_inner in (True, False))
    text = re.sub(rf"(?<![\w./])({inner})(?!\.?\w)", rf"{prefix}.\1", text)
    return re.sub(rf"\bset (`?)({own})(?!\.?\w)", rf"set \1{prefix}.\2", text)


def key_paths(model: type[BaseModel], prefix: str = "") -> Iterable[str]:
    """Dotted names of all keys that do not depend on a name the user gave, deepest first."""
    for name, field in model.model_fields.items():
        if section := _model_in(field.annotation):
            yield from key_paths(section, f"{prefix}{name}.") if not _is_named(field.annotation) else ()
    yield from (prefix + name for name in model.model_fields)


def _section(location: Location, model: type[BaseModel]) -> type[BaseModel]:
    """The model of the section at a location."""
    parts = list(location)
    while parts:
        annotation = model.model_fields[parts.pop(0)].annotation
        if _is_named(annotation) and parts:
            parts.pop(0)
        model = _model_in(annotation) or model
    return model


def _is_named(annotation: Any) -> bool:
    """Whether the annotation is a dictionary of named sections."""
    return getattr(annotation, "__origin__", None) is dict


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in found if model), None)
