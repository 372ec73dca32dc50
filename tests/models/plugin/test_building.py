import sys

import numpy as np
import pytest
import torch

from forgefield.config.model import ModelConfig
from forgefield.data.neighbors import neighbor_pairs
from forgefield.errors import UserError
from forgefield.files import read_json, write_json
from forgefield.models.foundation import import_model
from forgefield.models.inference import predict
from forgefield.models.potential import load_potential, save_potential
from forgefield.statistics import apply_statistics
from forgefield.statistics.summarize import UNITS

CODE = """
import torch

CALLS = []

class Pairs(torch.nn.Module):
    @classmethod
    def build(cls, config, statistics):
        CALLS.append((config, statistics))
        return cls(**config)

    def __init__(self, elements, r_max, gradient=True, mistake=None):
        super().__init__()
        self.r_max, self.mistake = r_max, mistake
        self.weight = torch.nn.Parameter(torch.rand(len(elements)), requires_grad=gradient)
        self.frozen = torch.nn.Parameter(torch.rand(1), requires_grad=False)
        self.register_buffer("offset", torch.tensor(CALLS[-1][1]["force_rms"]))
        self.third = torch.tensor(1.0) / 3

    def forward(self, graph):
        x = torch.linalg.vector_norm(graph.vectors, dim=1) / self.r_max
        edge = self.weight[graph.species[graph.sender]] * self.third * (1 - x) ** 3
        total = edge.new_zeros(len(graph.n_atoms))
        total = total.index_add(0, graph.atom_structure[graph.receiver], edge) + self.offset + self.frozen
        if self.mistake == "batch":
            return total + len(total)
        if self.mistake == "atoms":
            return edge
        return total.tolist() if self.mistake == "list" else total

class Fails:
    build = staticmethod(lambda config, statistics: config["width"])

class Number:
    build = staticmethod(lambda config, statistics: 3)
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """The module with the code, which Python can import for one test."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "my_pairs.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path / "code")
    import my_pairs

    yield my_pairs
    del sys.modules["my_pairs"]


def config(place="my_pairs:Pairs", **keys):
    section = {"object": place, "config": keys}
    return ModelConfig(architecture="python", elements=["O", "H"], r_max=3.0, seed=5, python=section)


def refused(tmp_path, message, *args, **keys):
    with pytest.raises(UserError, match=message) as caught:
        import_model("m", config(*args, **keys), tmp_path / "out")
    assert str(caught.value).startswith("models.m: ")
    assert not (tmp_path / "out").exists()


def test_what_build_makes_is_imported(code, tmp_path):
    import_model("m", config(), tmp_path / "out")
    given, statistics = code.CALLS[0]
    assert given == {"elements": ["H", "O"], "r_max": 3.0}
    assert statistics == {"energy_shifts": {"H": 0.0, "O": 0.0}, "force_rms": 1.0, "average_neighbors": 1.0}
    potential = load_potential(tmp_path / "out")
    assert (list(potential.parameters), sorted(potential.buffers)) == (["weight"], ["frozen", "offset"])
    with torch.random.fork_rng():
        torch.manual_seed(5)
        expected = torch.rand(2, dtype=torch.float64).numpy()
    np.testing.assert_array_equal(potential.parameters["weight"], expected)
    assert not potential.pretrained
    assert read_json(tmp_path / "out" / "import.json")["relative_difference"] < 1e-12


def test_numbers_are_those_of_the_module_in_the_precision_that_is_asked_for(code, tmp_path, structures):
    import_model("m", config(), tmp_path / "out")
    potential = load_potential(tmp_path / "out")
    water = structures[1]
    (fine,), (coarse,) = (predict(potential, [water], precision=p, wanted="virial") for p in ("float64", "float32"))
    pairs = neighbor_pairs(water, 3.0)
    d = water.positions[pairs.receiver] - water.positions[pairs.sender] + pairs.shift
    weights = dict(zip(potential.elements, potential.parameters["weight"], strict=True))
    both = [
        weights[water.numbers[i]] + weights[water.numbers[j]] for i, j in zip(pairs.sender, pairs.receiver, strict=True)
    ]
    energy = np.sum(np.array(both) / 3 * (1 - np.linalg.norm(d, axis=1) / 3.0) ** 3)
    assert fine.energy == pytest.approx(energy + 1.0 + potential.buffers["frozen"][0], rel=1e-14)
    assert coarse.energy == pytest.approx(fine.energy, rel=1e-6)
    assert coarse.energy != fine.energy


def test_statistics_build_a_model_from_scratch_again(code, tmp_path):
    import_model("m", config(), tmp_path / "out")
    start = load_potential(tmp_path / "out")
    shifts = {"energy_shifts": {"H": -13.0, "O": -430.0}}
    written = {"units": UNITS, "force_rms": 2.0, "neighbors": {"average": 4.0}}
    write_json(tmp_path / "statistics.json", shifts | written)
    potential = apply_statistics(start, tmp_path / "statistics.json")
    assert code.CALLS[-1][1] == {"force_rms": 2.0, "average_neighbors": 4.0} | shifts
    assert potential.buffers["offset"] == 2.0
    np.testing.assert_array_equal(potential.parameters["weight"], start.parameters["weight"])
    save_potential(potential, tmp_path / "applied")
    assert load_potential(tmp_path / "applied").config["statistics"]["force_rms"] == 2.0


@pytest.mark.parametrize(
    ("place", "keys", "message"),
    [
        (
            "json:Pairs",
            {},
            r"python\.object json:Pairs: .*json/__init__\.py has no Pairs; expected one of: .*JSONDecoder",
        ),
        ("no_such_module:Pairs", {}, r"python\.object no_such_module:Pairs: No module named .* by PYTHONPATH"),
        ("my_pairs:Pair", {}, r"python\.object my_pairs:Pair: .*my_pairs\.py has no Pair; did you mean Pairs\?$"),
        ("my_pairs:torch", {}, r"my_pairs:torch: has no function build\(config, statistics\)"),
        ("my_pairs:Fails", {}, "my_pairs:Fails: build failed with KeyError: 'width'"),
        ("my_pairs:Number", {}, r"my_pairs:Number: build made a int, expected a torch\.nn\.Module"),
        ("my_pairs:Pairs", {"gradient": False}, "build made a module without parameters to train"),
        (
            "my_pairs:Pairs",
            {"mistake": "batch"},
            r"the energy of sample structure 0 changes by .* what else is",
        ),
        ("my_pairs:Pairs", {"mistake": "atoms"}, r"forward\(graph\) gave shape \(\d+,\), expected the energy of each"),
        ("my_pairs:Pairs", {"mistake": "list"}, r"forward\(graph\) gave a list, expected the energy of each structure"),
    ],
)
def test_code_that_does_not_fit(code, tmp_path, place, keys, message):
    refused(tmp_path, message, place, **keys)


def test_other_arrays_than_build_makes(code, tmp_path, structures):
    import_model("m", config(), tmp_path / "out")
    potential = load_potential(tmp_path / "out")
    potential.parameters["weight"] = np.zeros(3)
    with pytest.raises(UserError, match=r"weight has shape \(3,\), expected \(2,\)"):
        list(predict(potential, structures[1:2]))
