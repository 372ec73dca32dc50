from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
import torch

from forgefield.config.model import ModelConfig
from forgefield.errors import UserError
from forgefield.files import read_json, sha256_of
from forgefield.models import foundation, parity
from forgefield.models.foundation import import_model
from forgefield.models.mace import torch_parity
from forgefield.models.mace.initial import from_scratch
from forgefield.models.mace.torch_exchange import to_torch
from forgefield.models.mace.torch_reference import quiet_mace
from forgefield.models.potential import load_potential, save_potential


@pytest.fixture(scope="module")
def pickled(make_potential, tmp_path_factory):
    """A mace-torch model file, and the potential it came from."""
    path = tmp_path_factory.mktemp("pickled") / "small.model"
    potential = make_potential(l_max=1, correlation=(2,), interactions=("RealAgnosticInteractionBlock",))
    with quiet_mace():
        torch.save(to_torch(potential, torch.float32), path)
    return path, potential


def test_a_trusted_pickle_is_imported_and_checked(pickled, tmp_path):
    path, original = pickled
    import_model("small", ModelConfig(foundation=str(path), sha256=sha256_of(path)), tmp_path / "out")
    potential = load_potential(tmp_path / "out")
    np.testing.assert_array_equal(
        potential.parameters["readouts.0.linear.weight"],
        original.parameters["readouts.0.linear.weight"].astype(np.float32),
    )
    report = read_json(tmp_path / "out" / "import.json")
    source = report["source"]
    assert source.pop("mace_torch")["head"] == "Default"
    assert source == {"kind": "foundation", "name": "small.model", "sha256": sha256_of(path)}
    assert report["check"].startswith("mace-torch")
    assert report["mace_torch_model"] == "as pickled"
    assert 0 < max(report["relative_differences"].values()) < 1e-12
    assert potential.pretrained


def test_an_unlisted_pickle_is_not_opened(pickled, tmp_path, monkeypatch):
    path, _ = pickled
    for module, name in ((torch, "load"), (torch_parity, "read_pickle")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("the pickle was opened"))
    for listed in (None, "0" * 64):
        config = ModelConfig(foundation=str(path), sha256=listed)
        with pytest.raises(UserError, match=rf"under models\.small: `sha256: {sha256_of(path)}`"):
            import_model("small", config, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_head_that_a_model_lacks_is_refused(pickled, tmp_path):
    path, _ = pickled
    config = ModelConfig(foundation=str(path), sha256=sha256_of(path), head="ccsd")
    with pytest.raises(UserError, match=r"models\.small \(small\.model\): .* no head 'ccsd'; expected one of: Default"):
        import_model("small", config, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_inexact_import_leaves_nothing(pickled, tmp_path, monkeypatch):
    path, _ = pickled
    monkeypatch.setattr(parity, "TOLERANCE", 1e-20)
    config = ModelConfig(foundation=str(path), sha256=sha256_of(path))
    with pytest.raises(UserError, match="differs from mace-torch's in its"):
        import_model("small", config, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "broken.model"
    path.write_bytes(b"not a pickle")
    with pytest.raises(UserError, match=r"broken\.model: neither a whole file of torch\.save nor"):
        import_model("broken", ModelConfig(foundation=str(path), sha256=sha256_of(path)), tmp_path / "out")


def test_a_forgefield_directory_needs_no_checksum(pickled, tmp_path):
    save_potential(pickled[1], tmp_path / "in")
    import_model("mine", ModelConfig(foundation=str(tmp_path / "in")), tmp_path / "out")
    weights = tmp_path / "out" / "weights.safetensors"
    assert weights.read_bytes() == (tmp_path / "in" / "weights.safetensors").read_bytes()
    with pytest.raises(UserError, match=r"models\.mine\.sha256"):
        import_model("mine", ModelConfig(foundation=str(tmp_path / "in"), sha256="0" * 64), tmp_path / "other")


def test_a_missing_foundation_names_the_nearest_file(pickled):
    config = ModelConfig(foundation=str(pickled[0].with_name("smal.model")))
    with pytest.raises(UserError, match=r"did you mean .*small\.model\?"):
        import_model("small", config, pickled[0].parent / "out")


def test_from_scratch_needs_no_torch(tmp_path, monkeypatch):
    monkeypatch.setattr(foundation, "_require_packages", lambda *_: pytest.fail("torch was asked for"))
    config = ModelConfig(elements=["O", "H"], hidden_channels=4, l_max=1, correlation=2, radial_mlp=[8], seed=3)
    import_model("new", config, tmp_path / "out")
    potential = load_potential(tmp_path / "out")
    assert (potential.elements, potential.pretrained) == ((1, 8), False)
    assert potential.source == {"kind": "scratch", "seed": 3}


def test_features_from_scratch_have_vectors_in_all_layers_but_the_last():
    config = ModelConfig(
        elements=["H"], hidden_l_max=1, n_interactions=3, hidden_channels=2, l_max=1, correlation=4, radial_mlp=[4]
    )
    potential = from_scratch(config)
    assert (potential.config["hidden_l_max"], potential.config["correlation"]) == ([1, 1, 0], [4, 4, 4])
    assert "products.0.symmetric_contractions.contractions.1.weights_max" in potential.parameters


def test_a_model_is_loaded_from_its_url_once_it_is_trusted(pickled, tmp_path, monkeypatch):
    path, _ = pickled
    monkeypatch.chdir(tmp_path)
    handler = partial(SimpleHTTPRequestHandler, directory=str(path.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/small.model"
        with pytest.raises(UserError, match=rf"under models\.small: `sha256: {sha256_of(path)}`"):
            import_model("small", ModelConfig(foundation=url), tmp_path / "out")
        server.shutdown()
    # the file is here now, and the server is not
    import_model("small", ModelConfig(foundation=url, sha256=sha256_of(path)), tmp_path / "out")
    assert read_json(tmp_path / "out" / "import.json")["source"]["name"] == "small.model"
