"""A small configuration that the tests change."""

from collections.abc import Callable

import pytest

from forgefield.config import Config, load_config
from forgefield.errors import UserError

TEXT = """
dataset: ethanol
model: small
datasets:
  ethanol:
    source: ethanol.npz
    units: {energy: kcal/mol, length: angstrom}
    split: {train: 100, valid: 0.1, test: 0.1}
models:
  small: {foundation: models/small}
"""


@pytest.fixture
def text() -> str:
    """A configuration with one dataset, ethanol, and one model, small."""
    return TEXT


@pytest.fixture
def load() -> Callable[..., Config]:
    """Load the small configuration with overrides such as ``training.lr=1``."""
    return lambda *overrides: load_config(TEXT, overrides)


@pytest.fixture
def mistake() -> Callable[..., str]:
    """The message of the error that the overrides lead to."""

    def message(*overrides: str) -> str:
        with pytest.raises(UserError) as caught:
            load_config(TEXT, overrides)
        return str(caught.value)

    return message
