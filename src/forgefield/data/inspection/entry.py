"""The entry of the configuration that uses the files that were looked at."""

import re
from collections.abc import Sequence
from typing import Any

import yaml

from forgefield.config.split import Split
from forgefield.data.inspection.inspect import Inspection
from forgefield.data.inspection.order import suitable_split
from forgefield.data.splits import split_frames
from forgefield.errors import UserError
from forgefield.units import Units

FEW = {"train": 0.34, "valid": 0.33, "test": 0.33}
"""Shares where the usual ones would leave a part empty."""


def dataset_entry(inspection: Inspection, sources: Sequence[str]) -> dict[str, Any]:
    """A dataset's settings that differ from the defaults.

    Args:
        inspection: what the files hold.
        sources: the paths that the user gave.
    """
    guess, default = inspection.guess, Units()
    kinds = [kind for kind in ("energy", "length", "forces") if kind not in guess.stated]
    units = {kind: unit for kind in kinds if (unit := getattr(guess.units, kind))}
    if inspection.assumed and all(getattr(default, kind) == unit for kind, unit in units.items()):
        units = {}
    entry: dict[str, Any] = {"source": sources[0] if len(sources) == 1 else list(sources)}
    entry |= {"units": units} if units else {}
    entry |= {"keys": inspection.names} if inspection.names else {}
    split, _ = suitable_split(inspection.order)
    split = {} if split["method"] == Split().method else split
    if inspection.frames["all"] and not _splits(inspection.frames["usable"], Split().shares):
        split |= FEW if _splits(inspection.frames["usable"], FEW) else {}
    return entry | ({"split": split} if split else {})


def problems(inspection: Inspection) -> list[str]:
    """Why a conversion would stop, as far as that is known; one line each."""
    found = list(inspection.guess.contradictions)
    n, least = inspection.frames["usable"], len(FEW)
    if inspection.frames["all"] and n < least:
        found.append(f"{n} usable frames are too few for training, validation and test; list more files under source")
    if not inspection.labels.keys() & {"energy", "forces"}:
        found.append("no energies and no forces found; set keys.energy and keys.forces")
    return found


def as_yaml(entry: dict[str, Any], name: str) -> str:
    """The text to paste into a configuration, under a name made of the user's own."""
    lines = "".join(f"    {key}: {on_one_line(value)}\n" for key, value in entry.items())
    return f"datasets:\n  {entry_name(name)}:\n{lines}"


def entry_name(text: str, otherwise: str = "data") -> str:
    """A text as the name of an entry of the configuration."""
    return re.sub(r"[^A-Za-z0-9_+-]+", "_", text).strip("_+-") or otherwise


def on_one_line(value: Any) -> str:
    """A value as YAML."""
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=True, width=10**6)
    return text.removesuffix("...\n").strip()


def _splits(n: int, shares: dict[str, float]) -> bool:
    try:
        split_frames(n, "blocks", shares, 0)
    except UserError:
        return False
    return True
