"""Environments in which something is broken or missing."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def broken_package(tmp_path, monkeypatch) -> Callable[[str, str], None]:
    """Return a function that puts a module with the given code in front of the real one, for new processes."""
    folder = tmp_path / "broken"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))

    def add(module: str, code: str) -> None:
        (folder / f"{module}.py").write_text(code)

    return add


@pytest.fixture
def bare_environment(tmp_path, monkeypatch) -> Path:
    """This environment's Python and packages, but not one program: neither beside Python nor on the PATH.

    Returns the folder where programs are looked for.
    """
    programs = tmp_path / "env" / "bin"
    programs.mkdir(parents=True)
    prefix = Path(sys.prefix)
    (programs / "python").symlink_to(sys.executable)
    (programs.parent / "pyvenv.cfg").write_text((prefix / "pyvenv.cfg").read_text())
    (programs.parent / "lib").symlink_to(prefix / "lib")
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", str(programs))
    return programs


@pytest.fixture
def add_program(bare_environment) -> Callable[[str, str], None]:
    """Return a function that puts a shell script into the bare environment."""

    def add(name: str, script: str) -> None:
        path = bare_environment / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return add
