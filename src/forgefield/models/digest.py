"""Telling models apart by what they compute, not by where they came from or what else is in their directories."""

import hashlib
import json
from pathlib import Path
from typing import Any

from forgefield.errors import UserError
from forgefield.files import read_json, sha256_of
from forgefield.models.description import AGAIN

# of a model's description, what does not change the model
ORIGIN = {"source", "created_by"}


def described(description: Path) -> dict[str, Any]:
    """What a ``model.json`` says of the model itself."""
    return {key: value for key, value in read_json(description, AGAIN).items() if key not in ORIGIN}


def model_sha256(model: Path) -> str:
    """The hexadecimal sha256 of a model: of its description, but for its origin, and of its weights.

    Raises:
        UserError: one of its files is missing or damaged.
    """
    weights = model / "weights.safetensors"
    text = json.dumps(described(model / "model.json"), sort_keys=True)
    if not weights.is_file():
        raise UserError(f"{weights}: no such file; {AGAIN}")
    return hashlib.sha256(f"{text}\n{sha256_of(weights)}".encode()).hexdigest()
