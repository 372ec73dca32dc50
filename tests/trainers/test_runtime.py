import os
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).with_name("count_page_faults.py")

SETTINGS = """
import jax
from forgefield.trainers.runtime import configure_jax
configure_jax(precision={precision!r}, devices={devices})
print(jax.numpy.ones(1, float).dtype, len(jax.local_devices()), jax.config.read("jax_cpu_enable_async_dispatch"))
print(jax.config.jax_compilation_cache_dir)
"""


def run(precision="float32", devices=1, **environment):
    code = SETTINGS.format(precision=precision, devices=devices)
    inherited = {key: value for key, value in os.environ.items() if key != "JAX_COMPILATION_CACHE_DIR"}
    environment = inherited | {"JAX_PLATFORMS": "cpu"} | environment
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_precision_devices_and_cache(tmp_path):
    settings, cache = run("float64", 2, XDG_CACHE_HOME=str(tmp_path), FORGEFIELD_ALLOCATOR="default")
    assert settings == "float64 2 True"
    assert cache.startswith(f"{tmp_path}/forgefield/jax/")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's settings")
def test_memory_is_kept_and_an_unwritable_cache_does_no_harm():
    assert run(XDG_CACHE_HOME="/dev/null", FORGEFIELD_ALLOCATOR="") == ["float32 1 False", "None"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's settings")
@pytest.mark.parametrize("devices", ["1", "2"])
def test_a_step_finds_the_memory_of_the_step_before(devices):
    """Unmapped and mapped again, 100 MB are 25,000 pages of 4 KiB."""
    environment = {k: v for k, v in os.environ.items() if k != "FORGEFIELD_ALLOCATOR"}
    done = subprocess.run(
        [sys.executable, FAULTS, devices], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 3000
