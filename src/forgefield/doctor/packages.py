"""The packages that forgefield stands on, by the extra that brings them."""

from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple


class Package(NamedTuple):
    """A distribution, and the module whose import shows that it works."""

    distribution: str
    module: str


# "base" is what forgefield itself depends on; every other group is the extra of that name in pyproject.toml.
GROUPS: dict[str, tuple[Package, ...]] = {
    "base": (
        Package("ase", "ase"),
        Package("h5py", "h5py"),
        Package("matplotlib", "matplotlib"),
        Package("numpy", "numpy"),
        Package("pydantic", "pydantic"),
        Package("pyyaml", "yaml"),
        Package("rich", "rich"),
        Package("safetensors", "safetensors"),
        Package("scipy", "scipy"),
        Package("typer", "typer"),
        Package("vesin", "vesin"),
    ),
    "jax": (Package("jax", "jax"), Package("optax", "optax")),
    "kernels": (
        Package("cuequivariance", "cuequivariance"),
        Package("cuequivariance-jax", "cuequivariance_jax"),
    ),
    "mpi": (Package("mpi4py", "mpi4py.MPI"), Package("mpi4jax", "mpi4jax")),
    "fabric": (
        Package("torch", "torch"),
        Package("lightning", "lightning.fabric"),
        Package("mace-torch", "mace.modules"),
        Package("flashcart", "flashcart"),
    ),
    "workflow": (
        Package("snakemake", "snakemake"),
        Package("snakemake-executor-plugin-slurm", "snakemake_executor_plugin_slurm"),
        Package("snakemake-executor-plugin-slurm-jobstep", "snakemake_executor_plugin_slurm_jobstep"),
    ),
    "formats": (Package("ase-db-backends", "ase_db_backends"), Package("dpdata", "dpdata")),
    "report": (Package("bokeh", "bokeh.plotting"), Package("jinja2", "jinja2"), Package("pillow", "PIL.Image")),
}


def installed_version(distribution: str) -> str | None:
    """Return the installed version, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
