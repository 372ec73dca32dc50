import pickletools
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from ase import Atoms
from ase.io import write

from forgefield.config.model import ModelConfig
from forgefield.errors import UserError
from forgefield.models.export import export_model
from forgefield.models.foundation import import_model
from forgefield.models.inference import predict
from forgefield.models.mace.torch_exchange import from_torch
from forgefield.models.mace.torch_pickle import read_pickle
from forgefield.models.mace.torch_reference import load_pickle, quiet_mace, torch_inputs
from forgefield.models.potential import load_potential, save_potential

SHIFTS = {1: -13.587222780835477, 6: -1029.4889999784455, 8: -2042.3}


@pytest.fixture(scope="module")
def trained(make_potential, tmp_path_factory):
    """A potential's directory, with energy shifts that single precision cannot hold."""
    directory = tmp_path_factory.mktemp("trained") / "model"
    save_potential(replace(make_potential(), energy_shifts=SHIFTS), directory)
    return directory


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "small.model"
    assert export_model(trained, path) == "mace, float64, energy shifts included"
    return path


CLIENT = """
import sys
sys.modules["forgefield"] = None
import numpy as np
from ase.io import read
from mace.calculators import MACECalculator
from mace.data import get_neighborhood
results = []
for atoms in read("structures.traj", ":"):
    atoms.calc = MACECalculator("small.model", default_dtype="float64")
    # a cell of mace-torch's own in open directions
    cell = get_neighborhood(atoms.positions, 3.0, tuple(atoms.pbc), np.array(atoms.cell))[3]
    virial = -atoms.get_stress(voigt=False) * abs(np.linalg.det(cell)) if atoms.pbc.any() else np.zeros((3, 3))
    results.append(np.concatenate([[atoms.get_potential_energy()], atoms.get_forces().ravel(), virial.ravel()]))
np.savez("results.npz", *results)
"""


def test_mace_torchs_calculator_gives_the_same_numbers_without_this_package(trained, exported, structures):
    """Virials, not stresses, for mace-torch divides those of slabs and wires by the volume of a cell of its own."""
    wire = replace(structures[1], pbc=np.array([True, False, False]))
    structures = [*structures, wire]
    folder = exported.parent
    write(folder / "structures.traj", [Atoms(s.numbers, s.positions, cell=s.cell, pbc=s.pbc) for s in structures])
    subprocess.run([sys.executable, "-W", "ignore", "-c", CLIENT], cwd=folder, check=True, capture_output=True)
    results = np.load(folder / "results.npz")
    for i, ours in enumerate(predict(load_potential(trained), structures, wanted="virial")):
        virial = -ours.stress * structures[i].volume if structures[i].pbc.any() else np.zeros((3, 3))
        expected = np.concatenate([[ours.energy], ours.forces.ravel(), virial.ravel()])
        np.testing.assert_allclose(results[f"arr_{i}"], expected, rtol=1e-12, atol=1e-11)


def test_the_file_names_no_class_of_this_package(exported):
    with zipfile.ZipFile(exported) as archive:
        (pickled,) = (archive.read(name) for name in archive.namelist() if name.endswith("data.pkl"))
    named = {argument for _, argument, _ in pickletools.genops(pickled) if isinstance(argument, str)}
    assert "mace.modules.models ScaleShiftMACE" in named
    assert not [name for name in named if "forgefield" in name]


def test_mace_torchs_lammps_export_takes_the_file(trained, exported, structures, monkeypatch):
    with quiet_mace():
        from mace.cli import create_lammps_model

        monkeypatch.setattr(sys, "argv", ["mace_create_lammps_model", str(exported)])
        create_lammps_model.main()
        compiled = torch.jit.load(str(exported) + "-lammps.pt")
    structure = structures[0]
    inputs = torch_inputs(load_pickle(exported), structure)
    inputs["cell"] = torch.eye(3, dtype=torch.float64)
    local = torch.ones(len(structure), dtype=torch.float64)
    output = compiled(inputs, local, compute_virials=False)
    ours = next(predict(load_potential(trained), [structure]))
    assert float(output["total_energy_local"].detach()) == pytest.approx(ours.energy, rel=1e-12)
    np.testing.assert_allclose(output["forces"].detach(), ours.forces, atol=1e-11)


def test_an_exported_potential_comes_back_with_the_same_bits(trained, exported):
    expected, found = load_potential(trained), from_torch(read_pickle(exported))
    assert (found.config, found.energy_shifts) == (expected.config, expected.energy_shifts)
    for key in ("parameters", "buffers"):
        for name, array in getattr(expected, key).items():
            np.testing.assert_array_equal(getattr(found, key)[name], array, err_msg=name, strict=True)


def test_the_precision_can_be_chosen(trained, tmp_path):
    assert export_model(trained, tmp_path / "x.model", dtype="float32").startswith("mace, float32")
    found = from_torch(read_pickle(tmp_path / "x.model"))
    assert {parameter.dtype.name for parameter in found.parameters.values()} == {"float32"}
    assert found.energy_shifts == SHIFTS


def test_what_cannot_be_exported_leaves_nothing(trained, tmp_path):
    with pytest.raises(UserError, match=r"--to mase: no such format; did you mean mace\?"):
        export_model(trained, tmp_path / "x.model", to="mase")
    small = {"n_hidden_feats": 2, "l_max_edge_attrs": 1, "l_max_hidden_feats": 0}
    import_model("m", ModelConfig(architecture="flashcart", elements=["H"], flashcart=small), tmp_path / "other")
    with pytest.raises(UserError, match="architecture 'flashcart' cannot be exported to mace"):
        export_model(tmp_path / "other", tmp_path / "x.model")
    with pytest.raises(UserError, match=r"--dtype float16: no such precision; did you mean float\d\d\?"):
        export_model(trained, tmp_path / "x.model", dtype="float16")
    with pytest.raises(UserError, match=rf"--output {tmp_path}: a directory; give the name of a file"):
        export_model(trained, tmp_path)
    assert not (tmp_path / "x.model").exists()


def test_forces_that_mace_torch_gets_wrong_are_announced(make_potential, tmp_path):
    potential = make_potential(correlation=(1,), interactions=("RealAgnosticInteractionBlock",), l_max=1)
    name = "radial_embedding.bessel_fn."
    buffers = {k: v for k, v in potential.buffers.items() if not k.startswith(name)}
    chebyshev = replace(
        potential,
        config=potential.config | {"radial_type": "chebyshev"},
        buffers=buffers | {name + "n": np.arange(1.0, 5.0)[None]},
    )
    save_potential(chebyshev, tmp_path / "model")
    assert "only energies will agree" in export_model(tmp_path / "model", tmp_path / "x.model")


def test_a_constant_that_depends_on_torchs_default_is_announced(make_potential, tmp_path):
    potential = make_potential(correlation=(1,), interactions=("RealAgnosticInteractionBlock",), l_max=1)
    constants = {"c": np.full(4, 0.25), "p": np.array(6), "covalent_radii": np.ones(119)}
    constants |= {"a_exp": np.array(0.3), "a_prefactor": np.array(0.4543)}
    buffers = dict(potential.buffers) | {f"pair_repulsion_fn.{name}": value for name, value in constants.items()}
    config = potential.config | {"pair_repulsion": True}
    save_potential(replace(potential, config=config, buffers=buffers), tmp_path / "model")
    assert "ZBL repulsion in torch's default precision" in export_model(tmp_path / "model", tmp_path / "x.model")
