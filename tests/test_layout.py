"""The rules of the house: what may import what, and what loads when."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Each level may import the levels before it.
LEVELS = (
    {"errors"},
    {"files", "provenance", "units"},
    {"config"},
    {"data"},
    {"models"},
    {"statistics"},
    {"trainers"},
    {"evaluation"},
    {"calculators"},
    {"report"},
    {"prepare"},
    {"doctor"},
    {"launch"},
    {"cli"},
)
LEVEL = {part: level for level, parts in enumerate(LEVELS) for part in parts}


def imports(path: Path) -> Iterator[str]:
    """Yield the absolute names of all modules that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def sources(root: Path) -> list[tuple[Path, str]]:
    """Return the package's files, each with the part of the package that it belongs to."""
    package = root / "src" / "forgefield"
    parts = ((path, path.relative_to(package).with_suffix("").parts[0]) for path in package.rglob("*.py"))
    return [(path, part) for path, part in parts if part != "__init__"]


def test_imports_point_up_only(root):
    for path, part in sources(root):
        for name in imports(path):
            target = name.split(".")[1] if name.startswith("forgefield.") else None
            if target in LEVEL and target != part:
                assert LEVEL[target] < LEVEL[part], f"{path.relative_to(root)} imports {name}"


def test_every_part_has_its_level(root):
    assert {part for _, part in sources(root)} <= set(LEVEL)


def test_every_package_that_is_imported_is_declared(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    distributions = packages_distributions()
    for path, _ in sources(root):
        for module in {name.split(".")[0] for name in imports(path)} - sys.stdlib_module_names - {"forgefield"}:
            owners = {canonicalize_name(owner) for owner in distributions.get(module, [module])}
            assert owners & declared, f"{path.relative_to(root)} imports {module}, which pyproject.toml does not list"


@pytest.mark.parametrize(
    "module",
    ["forgefield", "forgefield.config", "forgefield.data.convert", "forgefield.data.store", "forgefield.doctor"],
)
def test_engines_load_only_when_chosen(module):
    engines = {"jax", "torch", "mpi4py", "mpi4jax", "lightning"}
    code = f"import sys, {module}; print(sorted({engines} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_file_names_a_registry_host(root):
    # In halves, so that this file passes too.
    hosts = ["pypi" + ".org", "python" + "hosted.org", "download.py" + "torch.org", "conda" + ".anaconda.org"]
    command = ["git", "grep", "--name-only", "--fixed-strings", *(word for host in hosts for word in ("-e", host))]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if found.returncode > 1:
        pytest.skip(f"git cannot search here: {found.stderr.strip()}")
    assert found.stdout == ""
