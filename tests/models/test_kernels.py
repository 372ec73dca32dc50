import importlib.util

import jax
import pytest

from forgefield.errors import UserError
from forgefield.models import kernels
from forgefield.models.energy import energy_function
from forgefield.models.inference import Predictor


@pytest.fixture
def machine(monkeypatch):
    """A function that makes JAX's backend and the installed modules appear as given."""

    def appear(backend, *modules):
        monkeypatch.setattr(jax, "default_backend", lambda: backend)
        monkeypatch.setattr(kernels, "find_spec", lambda name: name in modules or None)

    return appear


@pytest.mark.parametrize(
    ("backend", "modules", "chosen"),
    [
        ("cpu", ("cuequivariance_jax", "cuequivariance_ops_jax"), "reference"),
        ("gpu", ("cuequivariance_jax", "cuequivariance_ops_jax"), "cuequivariance"),
        ("gpu", ("cuequivariance_jax",), "reference"),
        ("gpu", (), "reference"),
    ],
)
def test_auto(machine, backend, modules, chosen):
    machine(backend, *modules)
    assert kernels.choose_kernels("auto") == chosen


def test_what_is_asked_for_is_taken_or_refused(machine, potential):
    machine("cpu", "cuequivariance_jax")
    assert kernels.choose_kernels("cuequivariance") == "cuequivariance"
    machine("cpu")
    assert kernels.choose_kernels("reference") == "reference"
    for use in (energy_function, Predictor):
        with pytest.raises(
            UserError, match=r"cuequivariance-jax, which is not .*; pip install 'forgefield\[kernels\]'"
        ):
            use(potential, kernels="cuequivariance")
    machine("gpu", "cuequivariance_jax")
    with pytest.raises(UserError, match=r"its CUDA kernels .*; pip install cuequivariance-ops-jax-cu13"):
        kernels.choose_kernels("cuequivariance")


def test_the_kernels_of_this_installation_are_found():
    assert importlib.util.find_spec("cuequivariance_jax")
    assert kernels.choose_kernels("cuequivariance") == "cuequivariance"
