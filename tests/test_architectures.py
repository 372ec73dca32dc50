"""FlashCart and a user's own code, on real data, from the file to predictions, by the commands that a user types."""

import json
import re
import sys
from pathlib import Path

import ase.io
import numpy as np
import pytest

from forgefield.calculators import ForgefieldCalculator
from forgefield.cli import main
from forgefield.files import read_json

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "pytorch_models.md").read_text(), re.DOTALL)
UNITS = {"energy": "kcal/mol", "length": "angstrom"}
SOURCE = str(ROOT / "resources" / "glycolaldehyde" / "glycolaldehyde_pbe.npz")
SPLIT = {"method": "blocks", "train": 24, "valid": 6, "test": 6}
CONFIG = {
    "dataset": "glycolaldehyde",
    "model": "m",
    "backend": "fabric",
    "datasets": {"glycolaldehyde": {"source": SOURCE, "units": UNITS, "split": SPLIT}},
    "training": {"batch": 6, "epochs": 6, "lr": 0.02, "precision": "float64"},
    "plots": {"dpi": 50},
}
STAGES = ("convert", "import-model", "statistics", "train", "evaluate", "plot")


@pytest.fixture
def forgefield(monkeypatch, capsys, tmp_path):
    """Runs `forgefield ARGUMENTS` in an empty directory with the documentation's plug-in; gives code and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "pairs.py").write_text(EXAMPLES[0])
    monkeypatch.syspath_prepend(tmp_path / "code")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["forgefield", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code or 0, capsys.readouterr().err

    yield run
    sys.modules.pop("pairs", None)


@pytest.fixture
def model(save_flashcart, tmp_path):
    """A function that gives the entry of a model."""

    def entry(architecture, elements=("O", "C", "H")):
        if architecture == "flashcart":
            path = save_flashcart(tmp_path / "cart", elements=elements)
            return {"architecture": "flashcart", "foundation": str(path)}
        section = {"object": "pairs:Pairs", "config": {"width": 16}}
        return {"architecture": "python", "elements": list(elements), "r_max": 4.0, "python": section}

    return entry


@pytest.mark.parametrize("architecture", ["flashcart", "python"])
def test_from_the_file_to_predictions(forgefield, model, architecture):
    config = json.dumps(CONFIG | {"models": {"m": model(architecture)}})
    for stage in STAGES:
        code, errors = forgefield(stage, "--config", config)
        assert code == 0, errors
    run = Path("results/runs/glycolaldehyde-m-fabric")
    rows = [line.split(",") for line in (run / "history.csv").read_text().splitlines()]
    losses = [float(row[rows[0].index("valid_loss")]) for row in rows[1:]]
    assert losses[-1] < 0.95 * losses[0]
    assert (run / "parity_energy.png").exists()
    metrics = read_json(run / "metrics.json")["splits"]["test"]
    assert (metrics.keys() == {"trained"}) == (architecture == "python")

    assert forgefield("predict", str(run / "model"), SOURCE, "-o", "predicted.xyz")[0] == 0
    frames = ase.io.read("predicted.xyz", ":")[30:36]
    with np.load(SOURCE) as reference:
        errors = [f.get_forces() - F / 23.0605478 for f, F in zip(frames, reference["F"][30:36], strict=True)]
    last = metrics["trained" if architecture == "python" else "finetuned"]
    assert np.abs(errors).mean() == pytest.approx(last["forces"]["mae"], rel=1e-4)

    atoms = frames[0].copy()
    atoms.calc = ForgefieldCalculator(run / "model")
    np.testing.assert_allclose(atoms.get_forces(), frames[0].get_forces(), atol=1e-7)
    assert atoms.get_potential_energy() == pytest.approx(frames[0].get_potential_energy(), abs=1e-6)


def test_an_element_that_the_checkpoint_lacks_ends_in_one_line(forgefield, model):
    config = json.dumps(CONFIG | {"models": {"m": model("flashcart", elements=("H", "C"))}})
    assert [forgefield(stage, "--config", config)[0] for stage in STAGES[:2]] == [0, 0]
    code, errors = forgefield("statistics", "--config", config)
    assert code == 2
    where = r".*glycolaldehyde_pbe\.npz, frame 0"
    assert re.fullmatch(rf"error: {where}: O is unknown to the model .* \(it knows H, C\);.*\n", errors)


def test_a_checkpoint_of_another_architecture_ends_in_one_line(forgefield):
    models = {"m": {"architecture": "flashcart", "foundation": str(ROOT / "resources/foundation/hcno-gfn2")}}
    code, errors = forgefield("import-model", "--config", json.dumps(CONFIG | {"models": models}))
    assert code == 2
    assert re.fullmatch(r"error: models\.m: .* is of architecture 'mace', expected 'flashcart'; write .*\n", errors)
    assert not Path("results").exists()


def test_backend_jax_ends_in_one_line_before_anything_is_read(forgefield, model):
    config = json.dumps(CONFIG | {"backend": "jax", "models": {"m": model("python")}})
    code, errors = forgefield("train", "--config", config)
    assert code == 2
    assert re.fullmatch(
        "error: config: backend: jax trains architecture mace, .* is python; write backend: fabric\n", errors
    )
