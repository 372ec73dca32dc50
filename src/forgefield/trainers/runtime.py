"""JAX's settings that must be made before its first computation."""

import ctypes
import hashlib
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path

import jax

from forgefield.errors import UserError

# glibc's malloc.h
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX, M_ARENA_MAX = -1, -2, -4, -8
KEEP_FREE = 2**28


def configure_jax(*, precision: str = "float32", devices: int = 1) -> None:
    """Choose precision and the number of local devices, speed up CPU steps, and keep compiled functions on disk.

    Args:
        precision: ``float32`` or ``float64``.
        devices: local devices that will be used; a CPU is divided into as many.

    Raises:
        UserError: fewer devices are here than asked for.
    """
    jax.config.update("jax_enable_x64", precision == "float64")
    keep_memory(devices)
    _cache_compilations()
    if devices > 1:
        # refused once JAX has computed something: whether the devices suffice is checked below
        with suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", devices)
    found = len(jax.local_devices())
    if found < devices:
        raise UserError(f"devices: {devices} are asked for, but {found} {jax.default_backend()} devices are here")


def keep_memory(devices: int) -> None:
    """Tell glibc to keep freed memory, which a training step would otherwise get back page by page each time.

    XLA allocates its temporary memory anew in each step on a CPU; unmapped and mapped again, every page of it is
    faulted in and zeroed. Only the main arena grows without mapping. With synchronous dispatch one device's step runs
    on the main thread, which has that arena; those of several devices run on other threads, which are given it, too.
    ``FORGEFIELD_ALLOCATOR=default`` leaves all of it as it is, for machines that are short of memory.
    """
    if os.environ.get("FORGEFIELD_ALLOCATOR") == "default" or not sys.platform.startswith("linux"):
        return
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        options = [(M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, KEEP_FREE)]
        for option, value in [*options, (M_ARENA_MAX, 1)] if devices > 1 else options:
            mallopt(option, value)


def _cache_compilations() -> None:
    """Keep compiled functions in the user's cache directory, if it is writable and no other place is set."""
    if jax.config.jax_compilation_cache_dir:
        return
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # a home directory may be shared by machines with different processors, and compiled code runs on its own kind only
    directory = base / "forgefield" / "jax" / _processor()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(directory, os.W_OK):
        jax.config.update("jax_compilation_cache_dir", str(directory))


def _processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text()
        features = next((line for line in info.splitlines() if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"
