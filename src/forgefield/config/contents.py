"""The JSON files that forgefield writes, checked when they are read again."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from forgefield.config.messages import first_problem
from forgefield.files import DamagedFileError, read_json

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Record(BaseModel):
    """One object of such a file: what its reader needs, beside which there may be more."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)


Content = TypeVar("Content", bound=BaseModel)


def read_content(path: Path, model: type[Content], remedy: str) -> Content:
    """The content of a JSON file.

    Args:
        path: the file.
        model: what it holds.
        remedy: what messages say that a user can do.

    Raises:
        DamagedFileError: in one line, the file, the key that is missing or wrong, and the remedy.
    """
    return checked(path, read_json(path, remedy), model, remedy)


def checked(path: Path, content: dict[str, Any], model: type[Content], remedy: str) -> Content:
    """What was read from a file, as its model; see :func:`read_content`."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise DamagedFileError(f"{path}: {first_problem(error, model)}; {remedy}") from None
