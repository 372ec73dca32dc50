"""A preset from its command to the plots, with fewer epochs."""

import json
import os
import subprocess
import sys

import numpy as np

from forgefield.data.store import Store


def test_the_nanotube(root, tmp_path):
    (tmp_path / "resources").symlink_to(root / "resources")
    command = [sys.executable, "-m", "snakemake", "--snakefile", root / "Snakefile", "--cores", "2"]
    command += ["--configfile", root / "config/md22_nanotube.yaml", "--config", "training={epochs: 1}"]
    environment = {key: value for key, value in os.environ.items() if key != "SNAKEMAKE_PROFILE"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

    with (
        Store(tmp_path / "results/datasets/nanotube/train.h5") as store,
        np.load(root / "resources/nanotube/nanotube_gfn2.npz") as source,
    ):
        assert (store.units.energy, store.units.length) == ("kJ/mol", "nm")
        positions = [structure.positions for structure in store.read(range(16))]
        np.testing.assert_allclose(positions, source["R"][:16], atol=1e-9)
    run = tmp_path / "results/runs/nanotube-hcno-gfn2-jax"
    errors = json.loads((run / "metrics.json").read_text())["splits"]["test"]["finetuned"]
    assert errors["forces"]["n"] == 4 * 370 * 3
    for name, unit in (("energy", "eV/atom"), ("forces", "eV/Å")):
        assert f"({unit})" in (run / f"parity_{name}.svg").read_text()
