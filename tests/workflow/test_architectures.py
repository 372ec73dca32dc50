"""Models of other architectures than MACE in the workflow."""

import json

import pytest

CODE = """
import torch

class Pairs(torch.nn.Module):
    @classmethod
    def build(cls, config, statistics):
        return cls(config["r_max"])

    def __init__(self, r_max):
        super().__init__()
        self.r_max, self.depth = r_max, torch.nn.Parameter(torch.ones(1))

    def forward(self, graph):
        r = torch.linalg.vector_norm(graph.vectors, dim=1)
        energy = self.depth * (1 - r / self.r_max) ** 3
        return energy.new_zeros(len(graph.n_atoms)).index_add(0, graph.atom_structure[graph.receiver], energy)
"""
SMALL = {"n_hidden_feats": 2, "l_max_edge_attrs": 1, "l_max_hidden_feats": 0, "hidden_radial": [4]}
SHAPE = {"elements": ["H", "O"], "r_max": 2.0}


@pytest.fixture
def both(workspace, save_flashcart, monkeypatch):
    """A workspace with a FlashCart checkpoint and the code of a model, which Python finds as a user would tell it."""
    save_flashcart(workspace.path / "cart", elements=("O", "H"), **SMALL)
    (workspace.path / "pairs.py").write_text(CODE)
    monkeypatch.setenv("PYTHONPATH", str(workspace.path))
    path = workspace.path / "config" / "config.yaml"
    config = json.loads(path.read_text()) | {"backend": "fabric"}
    config["models"] = {
        "cart": {"architecture": "flashcart", "foundation": "cart"},
        "pairs": {"architecture": "python", "python": {"object": "pairs:Pairs"}, **SHAPE},
    }
    config["runs"] = {"cart": {"model": "cart"}, "pairs": {"model": "pairs"}}
    path.write_text(json.dumps(config))
    return workspace


def test_one_command_ends_in_plots_and_a_change_of_code_or_checkpoint_is_seen(both):
    done = both.run()
    assert done.returncode == 0, done.stdout + done.stderr
    for run, variants in {"cart": {"foundation", "refitted", "finetuned"}, "pairs": {"trained"}}.items():
        metrics = json.loads((both.results / "runs" / run / "metrics.json").read_text())
        assert metrics["splits"]["test"].keys() == variants
        assert (both.results / "runs" / run / "parity_forces.png").read_bytes().startswith(b"\x89PNG")
    assert both.jobs() == set()
    (both.path / "pairs.py").write_text(CODE + "# changed\n")
    assert "import_model" in both.jobs("results/models/pairs/model.json")
    assert both.jobs("results/models/cart/model.json") == set()
    settings = both.path / "cart" / "model_config.yaml"
    settings.write_text(settings.read_text() + "# changed\n")
    assert "import_model" in both.jobs("results/models/cart/model.json")
