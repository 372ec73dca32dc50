"""Fixtures shared by all tests."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Public reference files and pretrained models kept beside the repository; tests skip without them."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("../shared/data is not here")
    return path
