"""Where numbers come from: the code and the packages that computed them, and the machine."""

import os
import platform
import subprocess
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from forgefield import __version__

PACKAGES = (
    "numpy",
    "jax",
    "jaxlib",
    "mpi4jax",
    "torch",
    "lightning",
    "mace-torch",
    "flashcart",
    "cuequivariance",
    "ase",
)


def provenance(backend: str) -> dict[str, Any]:
    """The program, its packages and this machine, as JSON content; what is not known is left out.

    Args:
        backend: the engine that computes, which is asked for its devices.
    """
    found = {
        "forgefield": __version__,
        "git_commit": git_commit(Path(__file__).parent),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _installed(name))},
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_GiB": _memory(),
        "devices": _devices(backend),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
    }
    return {key: value for key, value in found.items() if value}


def git_commit(folder: Path) -> str | None:
    """The commit that a package is at, with a plus where files have changed since; None where git does not keep it."""
    # an environment can lie in a repository that is of something else
    kept = ["ls-files", "--error-unmatch", "__init__.py"]
    commands = (kept, ["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
    try:
        _, commit, changes = (
            subprocess.run(["git", "-C", str(folder), *c], capture_output=True, text=True, check=True).stdout.strip()
            for c in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}+" if changes else commit


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())


def _memory() -> float | None:
    """Of the machine, GiB."""
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (ValueError, OSError):
        return None


def _devices(backend: str) -> dict[str, int]:
    """Number of local devices by kind, as the engine, which is loaded already, sees them."""
    if backend == "jax" and "jax" in sys.modules:
        return dict(Counter(device.device_kind for device in sys.modules["jax"].local_devices()))
    if backend == "fabric" and "torch" in sys.modules:
        cuda = sys.modules["torch"].cuda
        return dict(Counter(cuda.get_device_name(i) for i in range(cuda.device_count()))) or {"cpu": 1}
    return {}
