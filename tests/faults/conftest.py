"""Makes the trainings of this folder importable, and gives their data and model."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A directory with the inputs of all trainings."""
    from trainings import make_inputs

    folder = tmp_path_factory.mktemp("faults")
    make_inputs(folder / "inputs")
    return folder
