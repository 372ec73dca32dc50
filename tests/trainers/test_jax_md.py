"""An energy function and a neighbor list of jax_md, as their users pass them."""

import json
from pathlib import Path

import pytest
from launching import start

SCRIPT = Path(__file__).parent / "recover_lennard_jones.py"


@pytest.mark.parametrize(
    ("devices", "ranks", "method"), [(1, None, "single"), (2, None, "jax"), (1, 2, "mpi")], ids=str
)
def test_parameters_of_an_energy_and_a_further_quantity_are_recovered(tmp_path, devices, ranks, method):
    output = tmp_path / "found.json"
    (process,) = start([SCRIPT, output, devices], ranks=ranks)
    assert process.wait() == 0
    found = json.loads(output.read_text())
    assert (found["method"], found["devices"]) == (method, devices * (ranks or 1))
    assert found["sigma"] == pytest.approx(2.2, abs=1e-3)
    assert found["epsilon"] == pytest.approx(0.04, abs=1e-4)
    assert found["decay"] == pytest.approx(1.5, abs=1e-3)
