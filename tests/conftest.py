"""Fixtures shared by all tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Read at the import of JAX and PyTorch, also in the processes that tests start: equal functions are compiled once. JAX
# reads and writes the cache under a lock only where its size is limited.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(2**30))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
# Nearly all of the time is compilation: the same operations, hardly optimized, are compiled in a fraction of it. Flags
# that are set already come last and win.
QUICK = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{QUICK} {os.environ.get('XLA_FLAGS', '')}"
# Tests run in one process per core.
os.environ.setdefault("OMP_NUM_THREADS", "1")


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


@pytest.fixture(scope="session")
def random_mace() -> Callable:
    """A function that makes a MACE with random weights, by default as small as can be; settings as keywords."""
    from forgefield.models.mace.initial import initial_potential
    from forgefield.models.mace.settings import MaceSettings

    def make(elements=(1, 6, 8), seed=0, **settings):
        smallest = {
            "r_max": 3.0,
            "hidden_channels": 2,
            "l_max": 1,
            "correlation": (1,),
            "interactions": ("RealAgnosticResidualInteractionBlock",),
            "n_bessel": 4,
            "polynomial_cutoff": 5,
            "radial_mlp": (4,),
            "mlp_channels": 2,
        }
        return initial_potential(elements, MaceSettings(**(smallest | settings)), seed)

    return make


@pytest.fixture(scope="session")
def save_flashcart() -> Callable:
    """A function that lets FlashCart write a checkpoint of a small model with random weights; settings as keywords."""
    import torch
    from flashcart.model.flashcart import FlashCartPotential

    def save(path, elements=("H", "C", "O"), seed=0, **settings):
        small = {"n_hidden_feats": 4, "l_max_edge_attrs": 2, "hidden_radial": [8], "hidden_readout": [8]}
        given = {"nonlinearity": True, "layer_norm": True, "avg_neighbors": 6.5} | settings
        module = FlashCartPotential(elements=list(elements), **({"r_max": 3.0} | small | given))
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(generator=generator)
            module.scale_shift.shifts.copy_(torch.linspace(-10.0, -500.0, len(elements)))
            module.scale_shift.scales.fill_(0.7)
        module.save_inference_checkpoint(path)
        return path

    return save
