"""Which environment every rule would run in, told by a stand-in for conda, of which nothing is installed here."""

import json
import os
from pathlib import Path

import pytest

CONDA = """#!/bin/sh
case "$*" in
  *--version*) echo conda 24.9.0 ;;
  *"info --json"*) echo '{"platform": "linux-64", "conda_prefix": "/", "root_prefix": "/", "default_prefix": "/"}' ;;
  *) echo '{"get": {"channel_priority": "strict"}}' ;;
esac
"""
FLASHCART = {"architecture": "flashcart", "elements": ["H", "O"], "r_max": 2.0}


@pytest.mark.parametrize(
    ("change", "engines"),
    [
        ({}, {"jax"}),
        ({"parallelism": "mpi"}, {"jax", "mpi"}),
        ({"backend": "fabric"}, {"jax"}),
        ({"backend": "fabric", "models": {"tiny": FLASHCART}}, set()),
    ],
)
def test_rules_run_where_their_packages_are(workspace, monkeypatch, change, engines):
    (workspace.path / "conda").write_text(CONDA)
    (workspace.path / "conda").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(workspace.path), os.environ["PATH"]]))
    path = workspace.path / "config" / "config.yaml"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    done = workspace.run("--dry-run", "--sdm", "conda", "--list-conda-envs")
    assert done.returncode == 0, done.stderr
    named = {Path(line.split()[0]).stem for line in done.stdout.splitlines() if "yaml" in line.split("\t")[0]}
    # every model is imported beside PyTorch; neither the conversion nor the plots need an engine
    assert named == {"workflow", "fabric"} | engines
