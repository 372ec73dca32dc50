"""What all sections of the configuration share."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
DURATION = re.compile(r"(\d+\.?\d*|\.\d+)\s*(s|min|h|d)")
MINUTES = {"s": 1 / 60, "min": 1.0, "h": 60.0, "d": 1440.0}
SHA256 = r"^[0-9a-f]{64}$"
URL = r"^https?://[^/\s]+/(\S*[^/\s])$"
OBJECT = r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9_+-]*$"


class Section(BaseModel):
    """One section of the configuration: immutable, and a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def number(value: Any) -> Any:
    """Text that is a number becomes one, for YAML 1.1 reads ``1e-3`` as text; true and false never do."""
    if isinstance(value, bool):
        raise ValueError("expected a number, found " + str(value).lower())
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        return int(value) if re.fullmatch(r"[-+]?\d+", value.strip()) else float(value)
    return value


def _lower_case(digits: Any) -> Any:
    """Some programs print checksums in upper case."""
    return digits.lower() if isinstance(digits, str) else digits


def _minutes(value: Any) -> Any:
    """Text with a unit of time becomes minutes."""
    if isinstance(value, str) and (match := DURATION.fullmatch(value.strip())):
        return float(match[1]) * MINUTES[match[2]]
    if isinstance(value := number(value), str):
        raise ValueError(f"expected minutes, or a text such as 90 min, 3.5 h or 2 d, found {value!r}")
    return value


AsNumber = BeforeValidator(number)  # last in an annotation, or the bounds are missing in the JSON schema
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), AsNumber]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), AsNumber]
Fraction = Annotated[float, Field(gt=0, lt=1), AsNumber]
Minutes = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_minutes)]
PositiveInteger = Annotated[int, Field(gt=0), AsNumber]
NonNegativeInteger = Annotated[int, Field(ge=0), AsNumber]
Seed = Annotated[int, Field(ge=0, lt=2**32), AsNumber]

Sha256 = Annotated[str, Field(pattern=SHA256), BeforeValidator(_lower_case)]
"""The hexadecimal sha256 of a file."""

Name = Annotated[str, StringConstraints(pattern=NAME), Field(coerce_numbers_to_str=True)]
"""The name of a dataset, model or run: part of file names."""
