"""pyproject.toml, the lock files and the conda files say the same; `make lock` brings them together."""

import importlib.util
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def update(root) -> ModuleType:
    """The script behind `make lock`."""
    spec = importlib.util.spec_from_file_location("update", root / "envs" / "update.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("engine", ["jax", "mpi", "fabric", "workflow"])
def test_conda_file_has_the_pins_of_the_locks(root, update, engine):
    assert (root / "envs" / f"{engine}.yaml").read_text() == update.render_conda(engine, update.read_pins())


def test_every_requirement_is_pinned_within_its_limits(update):
    versions: dict[str, list[str]] = {}
    for pin in update.read_pins():
        versions.setdefault(pin.name, []).append(pin.requirement.split("==")[1].split(" ")[0])
    for requirement in update.direct_requirements(
        ("jax", "kernels", "mpi", "fabric", "formats", "report", "docs", "workflow", "dev")
    ):
        assert requirement.name in versions, f"{requirement} is not in the lock files"
        for version in versions[requirement.name]:
            assert requirement.specifier.contains(version), f"{requirement}, but the lock files have {version}"


def test_everything_but_pytorch_is_checked_by_hash(update):
    unchecked = [pin.name for pin in update.read_pins() if "--hash=sha256:" not in pin.text]
    assert unchecked == ["torch"]


def test_an_engine_gets_what_its_packages_need(update):
    pins = update.read_pins()
    names = {engine: {pin.name for pin in update.engine_pins(engine, pins)} for engine in update.ENGINES}
    assert {"jax", "jaxlib", "ml-dtypes", "optax", "numpy", "cuequivariance-jax", "networkx"} <= names["jax"]
    assert {"mpi4jax", "mpi4py", "jaxlib"} <= names["mpi"]
    assert {"torch", "e3nn", "torchmetrics"} <= names["fabric"]
    assert "torch" not in names["jax"] | names["mpi"] | names["workflow"]
    assert "jax" not in names["workflow"]
    assert "pytest" not in set().union(*names.values())


def test_files_name_no_index(root, update):
    for path in [*(root / "envs").glob("*.lock"), *(root / "envs").glob("*.yaml")]:
        assert "://" not in path.read_text(), f"{path.name} names a host"
