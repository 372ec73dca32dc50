"""`forgefield init`: the file it writes trains as it is, by both ways."""

import json
import shlex
from pathlib import Path

import ase
import ase.io
import numpy as np
import pytest
import yaml

from forgefield.config import load_config
from forgefield.files import sha256_of
from forgefield.models.potential import save_potential


@pytest.fixture
def model(tmp_path, random_mace) -> str:
    """A foundation model of hydrogen and oxygen."""
    save_potential(random_mace(elements=(1, 8)), tmp_path / "small" / "model")
    return "small/model"


def test_the_file_names_what_was_found(forgefield, water, model, tmp_path):
    code, output, errors = forgefield("init", "water.npz", "--model", model)
    assert (code, errors) == (0, "")
    assert output == (tmp_path / "water.yaml").read_text()
    content = yaml.safe_load(output)
    assert content["datasets"]["water"]["source"] == "water.npz"
    assert content["datasets"]["water"]["units"] == {"energy": "eV", "length": "angstrom"}
    assert content["datasets"]["water"]["split"]["method"] == "blocks"
    assert "# split: all frames are of the same atoms, as in one trajectory" in output
    assert content["models"] == {"small": {"architecture": "mace", "foundation": model}}
    assert content["training"]["batch"] <= 8
    assert "# units: length: in sums of two covalent radii" in output
    assert "8 structures of 3 atoms (H O)" in output
    load_config(tmp_path / "water.yaml").run("water-small-jax")


def test_it_trains_and_tests_and_is_reported(forgefield, water, model, tmp_path):
    """The commands in the head of the file, with two epochs, and JSON for programs at the end."""
    forgefield("init", "water.npz", "--model", model)
    head = [line for line in (tmp_path / "water.yaml").read_text().splitlines() if line.startswith("#     forgefield")]
    train, test = (shlex.split(line[1:])[1:] for line in head)
    code, output, errors = forgefield(*test)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("error: runs/water/model: not trained yet; start `forgefield train`")
    assert not (tmp_path / "runs/water").exists()
    assert forgefield(*train, "training.epochs=2", "evaluation.splits=[test]")[0] == 0
    code, output, errors = forgefield(*test, "evaluation.splits=[test]", "--json")
    assert code == 0, errors
    assert json.loads(output) == json.loads((tmp_path / "runs/water/metrics.json").read_text())
    assert "Errors of water" in errors
    provenance = json.loads((tmp_path / "runs/water/provenance.json").read_text())
    assert provenance["trained"]["epochs"] == 2
    assert provenance["sha256"].keys() >= {"data/train.h5", "model/weights.safetensors", "statistics"}
    assert provenance["sha256"]["water.npz"] == sha256_of(tmp_path / "water.npz")
    assert provenance["packages"]["jax"]
    assert forgefield("plot", "water.yaml")[0] == 0
    code, output, _ = forgefield("report", "runs/water", "-o", "report.html")
    assert (code, output.split(",")[0]) == (0, "report.html: 1 run")


def test_without_a_model_it_starts_from_scratch(forgefield, water):
    _, output, _ = forgefield("init", "water.npz", "-o", "mine.yaml")
    assert yaml.safe_load(output)["models"] == {"scratch": {"elements": ["H", "O"]}}
    assert Path("mine.yaml").exists()


def test_a_pickled_model_comes_with_its_sha256_and_what_that_means(forgefield, water, tmp_path):
    (tmp_path / "big.model").write_bytes(b"a pickle")
    _, output, _ = forgefield("init", "water.npz", "--model", "big.model")
    assert len(yaml.safe_load(output)["models"]["big"]["sha256"]) == 64
    assert "you trust it" in output


def test_frames_without_a_label_are_left_to_the_workflow(forgefield, tmp_path):
    frames = [ase.Atoms("OH", [[0, 0, 0], [0, 0, 1 + 0.01 * i]]) for i in range(20)]
    for i, atoms in enumerate(frames):
        atoms.info["REF_energy"] = -10.0 + 0.01 * i
        if i:
            atoms.arrays["REF_forces"] = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    ase.io.write(tmp_path / "some.extxyz", frames)
    code, output, _ = forgefield("init", "some.extxyz")
    assert code == 0
    assert "Some frames have no forces" in output
    assert "output_path" not in yaml.safe_load(output)


def test_forces_of_another_name_are_asked_for(forgefield, tmp_path):
    frames = [ase.Atoms("OH", [[0, 0, 0], [0, 0, 1 + 0.01 * i]], info={"energy": -9.0}) for i in range(20)]
    for atoms in frames:
        atoms.arrays["grad"] = atoms.positions - 1.0
    ase.io.write(tmp_path / "some.extxyz", frames)
    code, output, error = forgefield("init", "some.extxyz")
    assert (code, output) == (2, "")
    assert error.startswith(
        "error: some.extxyz: no forces found; is it grad? Write a run file by hand that names it, such"
    )
    assert "`keys: {forces: grad}`, with a minus" in error


def test_other_numbers_are_only_remarked_upon(forgefield, tmp_path):
    """Weights and a virial of three atoms have the shape of a label that is not there, but are none."""
    frames = [ase.Atoms("OHH", [[0, 0, 0], [0, 0.8, 0.6], [0, -0.8, 0.6 + 0.01 * i]]) for i in range(20)]
    for atoms in frames:
        atoms.info |= {"config_weight": 2.0, "temperature": 300.0, "virial": np.eye(3)}
        atoms.arrays["vel"], atoms.arrays["forces"] = np.ones((3, 3)), np.ones((3, 3))
    ase.io.write(tmp_path / "forces.extxyz", frames)
    for atoms in frames:
        atoms.info["energy"] = -9.0
        del atoms.arrays["forces"], atoms.info["temperature"]
    ase.io.write(tmp_path / "energies.extxyz", frames)
    for label, key in {"forces": "vel", "energy": "temperature"}.items():
        there = "forces" if label == "energy" else "energies"
        code, output, error = forgefield("init", f"{there}.extxyz")
        assert (code, error) == (0, "")
        assert f"# No {label} found. If it is {key}, name it: `keys: {{{label}: {key}}}`.\n" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.npz"], "none.npz: no such file"),
        (["water.npz", "--model", "no/model"], "--model no/model: no such file or directory; give a"),
        (["water.npz", "--model", "none.model"], "--model none.model: no such file or directory; give a"),
        (["water.npz", "--model", "."], ".: no model here"),
        (["water.npz", "--model", "carbon"], "carbon: the model does not know H, O"),
        (["water.npz", "-o", "old.yaml"], "old.yaml: is there already"),
        (["few.npz"], "few.npz: 2 usable frames are too few"),
    ],
)
def test_mistakes(forgefield, water, random_mace, tmp_path, arguments, message):
    save_potential(random_mace(elements=(6,)), tmp_path / "carbon")
    (tmp_path / "old.yaml").write_text("dataset: mine\n")
    with np.load(tmp_path / "water.npz") as file:
        np.savez(tmp_path / "few.npz", **{key: file[key] if key == "z" else file[key][:2] for key in file})
    code, output, errors = forgefield("init", *arguments)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"error: {message}")
    assert (tmp_path / "old.yaml").read_text() == "dataset: mine\n"
    assert not (tmp_path / "water.yaml").exists()
