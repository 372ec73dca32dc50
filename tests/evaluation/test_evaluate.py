"""Metrics and predictions files against numpy on predictions made in one batch."""

import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest

from forgefield.errors import UserError
from forgefield.evaluation.evaluate import evaluate_run
from forgefield.files import read_json
from forgefield.models.inference import predict
from forgefield.models.potential import load_potential, save_potential


@pytest.fixture(scope="module")
def evaluated(run_files):
    """The run after evaluation, and its metrics as returned."""
    metrics = evaluate_run(run_files.config, run_files.data, run_files.foundation, run_files.statistics, run_files.run)
    return run_files, metrics


@pytest.fixture(scope="module")
def expected(run_files, structures):
    """Predictions of each variant, all structures in one batch."""
    paths = {"foundation": run_files.foundation, "finetuned": run_files.run / "model"}
    return {
        variant: list(predict(load_potential(path), structures, wanted="virial")) for variant, path in paths.items()
    }


def test_predictions_file_holds_every_structure_once_in_order(evaluated, structures, expected):
    files, _ = evaluated
    with h5py.File(files.run / "predictions_test.h5") as file:
        np.testing.assert_array_equal(file["source_index"], np.arange(100, 111))
        np.testing.assert_array_equal(file["n_atoms"], [len(s) for s in structures])
        for i, (structure, prediction) in enumerate(zip(structures, expected["finetuned"], strict=True)):
            n = len(structure)
            np.testing.assert_array_equal(file["species"][i, :n], structure.numbers)
            assert file["finetuned/energy"][i] == pytest.approx(prediction.energy, rel=1e-12)
            np.testing.assert_allclose(file["finetuned/forces"][i, :n], prediction.forces, atol=1e-11)
            np.testing.assert_array_equal(file["finetuned/forces"][i, n:], 0.0)
            if structure.energy is not None:
                assert file["reference/energy"][i] == pytest.approx(structure.energy, rel=1e-12)


def test_absent_labels_are_nan_and_units_are_named(evaluated, structures):
    files, _ = evaluated
    with h5py.File(files.run / "predictions_test.h5") as file:
        np.testing.assert_array_equal(np.isnan(file["reference/energy"]), [s.energy is None for s in structures])
        np.testing.assert_array_equal(
            np.isnan(file["reference/forces"][:, 0, 0]), [s.forces is None for s in structures]
        )
        assert file["reference/energy"].attrs["units"] == "eV"
        assert file["refitted/forces"].attrs["units"] == "eV/angstrom"
        assert file["finetuned/stress"].attrs["units"] == "eV/angstrom^3"


def test_metrics_equal_numpy_on_the_whole_arrays(evaluated, structures, expected):
    files, metrics = evaluated
    pairs = [(s, p) for s, p in zip(structures, expected["finetuned"], strict=True)]
    per_atom = np.array([(p.energy - s.energy) / len(s) for s, p in pairs if s.energy is not None])
    forces = np.concatenate([p.forces - s.forces for s, p in pairs if s.forces is not None]).ravel()
    stress = np.array([p.stress + s.virial / s.volume for s, p in pairs if s.virial is not None])
    found = metrics["splits"]["test"]["finetuned"]
    for quantity, errors in (("energy_per_atom", per_atom), ("forces", forces), ("stress", stress)):
        assert found[quantity]["n"] == errors.size
        assert found[quantity]["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-9)
        assert found[quantity]["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-9)
        assert found[quantity]["max"] == pytest.approx(np.abs(errors).max(), rel=1e-9)
    assert found["energy"]["absent"] == sum(s.energy is None for s in structures)
    assert read_json(files.run / "metrics.json") == metrics
    assert metrics["units"]["forces"] == "eV/angstrom"


def test_refitted_differs_from_the_foundation_by_its_shifts(evaluated, structures, expected):
    files, metrics = evaluated
    corrections = read_json(files.statistics)["energy_shift_corrections"]
    by_number = {1: corrections["H"], 6: corrections["C"], 8: corrections["O"]}
    shift = [sum(by_number[int(z)] for z in s.numbers) for s in structures]
    with h5py.File(files.run / "predictions_test.h5") as file:
        energies = [p.energy for p in expected["foundation"]]
        np.testing.assert_allclose(file["refitted/energy"], np.add(energies, shift), rtol=1e-12)
        np.testing.assert_array_equal(file["refitted/forces"], file["foundation/forces"])
    split = metrics["splits"]["test"]
    assert split["refitted"]["energy"]["rmse"] < split["foundation"]["energy"]["rmse"]


def test_a_run_from_scratch_has_one_variant(run_files, foundation, tmp_path):
    save_potential(replace(foundation, pretrained=False), tmp_path / "scratch")
    shutil.copytree(run_files.run / "model", tmp_path / "run" / "model")
    metrics = evaluate_run(
        run_files.config, run_files.data, tmp_path / "scratch", run_files.statistics, tmp_path / "run"
    )
    assert list(metrics["splits"]["test"]) == ["trained"]


@pytest.mark.parametrize(
    ("weights", "scale", "message"),
    [
        (1e200, 1.0, r"the model gives \w+ NaN or infinite; "),
        (1.0, 1e150, r"its \w+ is off by \S+ \S+; .* train again with a lower training\.lr"),
    ],
)
def test_predictions_beyond_measure_name_file_variant_and_frame(
    run_files, foundation, tmp_path, weights, scale, message
):
    parameters = {k: weights * v for k, v in foundation.parameters.items()}
    config = foundation.config | {"scale": scale}
    save_potential(replace(foundation, parameters=parameters, config=config), tmp_path / "run" / "model")
    with pytest.raises(UserError, match=rf"^{run_files.data}/test\.h5: frame 10\d, finetuned model: {message}"):
        evaluate_run(run_files.config, run_files.data, run_files.foundation, run_files.statistics, tmp_path / "run")
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["model"]


def test_a_diverged_model_is_refused_and_leaves_no_files(run_files, foundation, tmp_path):
    diverged = {k: np.full_like(v, np.nan) for k, v in foundation.parameters.items()}
    save_potential(replace(foundation, pretrained=False), tmp_path / "scratch")
    save_potential(replace(foundation, parameters=diverged), tmp_path / "run" / "model")
    with pytest.raises(UserError, match="is NaN or infinite; import or train the model again"):
        evaluate_run(run_files.config, run_files.data, tmp_path / "scratch", run_files.statistics, tmp_path / "run")
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["model"]
