import numpy as np
import pytest
import torch
import yaml

from forgefield.config.model import ModelConfig
from forgefield.errors import UserError
from forgefield.files import read_json, sha256_of
from forgefield.models import parity
from forgefield.models.flashcart import checkpoint
from forgefield.models.foundation import import_model
from forgefield.models.potential import load_potential, save_potential


def foundation(path, **keys):
    return ModelConfig(architecture="flashcart", foundation=str(path), **keys)


@pytest.fixture
def saved(save_flashcart, tmp_path):
    return save_flashcart(tmp_path / "theirs")


def refused(path, tmp_path, message, **keys):
    with pytest.raises(UserError, match=message) as caught:
        import_model("m", foundation(path, **keys), tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_is_imported_and_checked_without_a_checksum(saved, tmp_path):
    import_model("m", foundation(saved), tmp_path / "out")
    potential = load_potential(tmp_path / "out")
    assert potential.pretrained
    assert potential.cutoff == 3.0
    assert potential.config["avg_neighbors"] == 6.5
    report = read_json(tmp_path / "out" / "import.json")
    assert report["source"] == {"kind": "foundation", "name": "theirs", "sha256": sha256_of(saved / "model.pt")}
    assert report["check"] == "flashcart 0.1.0, float64"
    assert report["relative_differences"].keys() == {"energy", "forces", "virial"}
    assert 0 < max(report["relative_differences"].values()) < 1e-11


def test_an_imported_checkpoint_is_imported_again(saved, tmp_path):
    import_model("m", foundation(saved), tmp_path / "one")
    import_model("m", foundation(tmp_path / "one"), tmp_path / "two")
    one, two = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_the_check_sees_a_wrong_constant(saved, tmp_path, monkeypatch):
    real = checkpoint.from_flashcart

    def wrong(*args, **kwargs):
        potential = real(*args, **kwargs)
        potential.buffers["interactions.0.sqrt_avg_neighbors"][...] *= 1 + 1e-7
        return potential

    monkeypatch.setattr(checkpoint, "from_flashcart", wrong)
    refused(saved, tmp_path, r"models\.m: .*theirs: the imported model differs from flashcart's in its \w+ by")


def test_the_check_sees_a_virial_of_the_wrong_sign(saved, tmp_path, monkeypatch):
    real = checkpoint.reference
    monkeypatch.setattr(
        checkpoint,
        "reference",
        lambda *args: (r := real(*args)) and r._replace(virial=None if r.virial is None else -r.virial),
    )
    refused(saved, tmp_path, "differs from flashcart's in its virial")


def test_a_file_that_would_run_code_is_not_run(saved, tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"weight": Evil()}, saved / "model.pt")
    refused(saved, tmp_path, r"model\.pt: not the weights of a model \(UnpicklingError\)")
    assert not (tmp_path / "ran").exists()


def test_a_wrong_checksum(saved, tmp_path):
    refused(saved, tmp_path, r"models\.m\.sha256 is 0+, but .*model\.pt has", sha256="0" * 64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dropout": 0.1}, "dropout is unknown in FlashCart 0.1.0"),
        ({"r_max": "far"}, r"it describes no model \(ValueError: "),
        ({"elements": ["H", "C", "Xx"]}, "elements has 'Xx', which is no element"),
        ({"elements": ["H", "C", "H"]}, "elements has 'H'"),
        ({"n_radial": 5}, r"model\.pt: interactions\.0\.radial_mlp\.0\.weight has shape"),
    ],
)
def test_settings_of_another_model(saved, tmp_path, changes, message):
    path = saved / "model_config.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))
    refused(saved, tmp_path, message)


def test_weights_that_are_no_numbers(saved, tmp_path):
    state = torch.load(saved / "model.pt")
    state["readout.readout_mlp.0.weight"][0, 0] = np.nan
    torch.save(state, saved / "model.pt")
    refused(saved, tmp_path, r"model\.pt: parameter readout\.readout_mlp\.0\.weight is NaN or infinite")


@pytest.mark.parametrize("file", ["model.pt", "model_config.yaml"])
def test_a_file_that_is_missing(saved, tmp_path, file):
    (saved / file).unlink()
    refused(saved, tmp_path, r"holds no (model\.pt|weights\.safetensors); it is not a FlashCart directory with")


def test_a_checkpoint_of_another_architecture(saved, tmp_path, random_mace):
    with pytest.raises(UserError, match=r"is a FlashCart checkpoint, expected .*; write architecture: flashcart"):
        import_model("m", ModelConfig(foundation=str(saved)), tmp_path / "out")
    save_potential(random_mace(), tmp_path / "mace")
    refused(tmp_path / "mace", tmp_path, "is of architecture 'mace', expected 'flashcart'; write architecture: mace")
    (tmp_path / "x.model").write_bytes(b"")
    refused(tmp_path / "x.model", tmp_path, "is a file, expected a FlashCart directory .*write architecture: mace")


def test_the_check_needs_every_digit(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(parity, "TOLERANCE", 1e-20)
    refused(saved, tmp_path, "differs from flashcart's in its")
