import json
from dataclasses import replace

import pytest
from pair_potential import random_structures

from forgefield.config import load_config
from forgefield.data.store import StoreWriter
from forgefield.models.potential import save_potential
from forgefield.statistics.summarize import UNITS
from forgefield.trainers.fingerprint import code, fingerprint
from forgefield.units import Units


def test_the_code_of_a_users_own_model_counts(tmp_path, monkeypatch, random_mace):
    mace = random_mace((1, 8))
    potential = replace(mace, architecture="python", config={"object": "own_model:Model"})
    (tmp_path / "own_model.py").write_text("import own_layers\n")
    (tmp_path / "own_layers.py").write_text("WIDTH = 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(code(potential))
    (tmp_path / "own_layers.py").write_text("WIDTH = 8\n")
    after = dict(code(potential))
    assert before.keys() == after.keys() == {"code/own_model.py", "code/own_layers.py"}
    assert [name for name in before if before[name] != after[name]] == ["code/own_layers.py"]
    assert dict(code(mace)) == {}


@pytest.fixture
def make(tmp_path, random_mace):
    """A function that makes a training's files from a source, and gives its fingerprint."""
    data = {"source": "d.xyz", "units": {"energy": "eV", "length": "angstrom"}}
    config = {"dataset": "d", "datasets": {"d": data}, "model": "m", "models": {"m": {"elements": ["H"]}}}
    run = load_config(config).run("d-m-jax")

    def made(source, moved=0.0, units="eV"):
        structures = random_structures(4, largest=5)
        for part in ("train", "valid"):
            own = [replace(s, positions=s.positions + moved * (part == "train")) for s in structures]
            about = {"split": part, "source": json.dumps([source]), "source_sha256": json.dumps([f"of {source}"])}
            layout = {"max_atoms": 5, "units": Units(units, "angstrom"), "dtype": "float64", "has_virial": False}
            with StoreWriter(tmp_path / f"{part}.h5", n_structures=4, attributes=about, **layout) as writer:
                writer.append(own)
        save_potential(replace(random_mace((1, 8)), source={"name": source}), tmp_path / "model")
        values = {"energy_shifts": {"H": 0.0, "O": moved}, "force_rms": 1.0, "neighbors": {"average": 2.0}}
        values |= {"units": UNITS, "source": source}
        (tmp_path / "statistics.json").write_text(json.dumps(values))
        return dict(fingerprint(run, tmp_path, tmp_path / "model", tmp_path / "statistics.json"))

    return made


def test_files_that_hold_the_same_are_the_same_whatever_they_came_from(make):
    first = make("a.xyz")
    assert make("b.xyz") == first
    for change, names in [
        ({"moved": 1.0}, {"data/train.h5", "statistics"}),
        ({"units": "kJ/mol"}, {"data/train.h5", "data/valid.h5"}),
    ]:
        changed = make("a.xyz", **change)
        assert {name for name in first if first[name] != changed[name]} == names
