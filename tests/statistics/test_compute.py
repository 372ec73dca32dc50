"""Statistics of small stores against values worked out by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

from forgefield.config.evaluation import StatisticsConfig
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.files import write_json
from forgefield.models.inference import predict
from forgefield.models.potential import save_potential
from forgefield.statistics import apply_statistics, compute_statistics

CONFIG = StatisticsConfig()


def water(energy=None, forces=None, **other):
    """Neighbors within 3 Å: each atom has both others."""
    positions = np.array([[0.0, 0.0, 0.0], [0.96, 0.0, 0.0], [-0.24, 0.93, 0.0]])
    return Structure(np.array([8, 1, 1]), positions, energy=energy, forces=forces, **other)


def hydrogen(energy=None, distance=0.74, **other):
    return Structure(np.array([1, 1]), np.array([[0.0, 0.0, 0.0], [distance, 0.0, 0.0]]), energy=energy, **other)


@pytest.fixture
def statistics_of(tmp_path, write_store):
    """A function: statistics of structures for a potential, through the files."""

    def compute(structures, potential, config=CONFIG):
        save_potential(potential, tmp_path / "model")
        return compute_statistics(write_store(structures), tmp_path / "model", config)

    return compute


def test_raw_energies_of_a_model_from_scratch(statistics_of, untrained):
    """H2 at -2 eV and H2O at -9 eV: H is -1, O is -7, and C, which the data lacks, stays 0."""
    structures = [hydrogen(-2.0), water(-9.0), hydrogen(-2.0)]
    statistics = statistics_of(structures, untrained)
    assert statistics["energy_shifts"] == pytest.approx({"H": -1.0, "C": 0.0, "O": -7.0})
    assert statistics["composition"]["rank"] == 2
    assert statistics["composition"]["indistinguishable"] == []
    assert statistics["residual"]["before"] is None
    assert statistics["residual"]["after"] == pytest.approx({"mae": 0.0, "rmse": 0.0}, abs=1e-9)
    assert statistics["energy_per_atom"] == pytest.approx(
        {"min": -3.0, "max": -1.0, "mean": -5 / 3, "std": np.std([-1, -3, -1])}
    )


def test_sizes_neighbors_and_force_rms(statistics_of, untrained):
    """Six neighbors in water, two in hydrogen, none between atoms 4 Å apart: 8 / 7 on average."""
    structures = [water(forces=np.full((3, 3), 2.0)), hydrogen(), hydrogen(distance=4.0)]
    statistics = statistics_of(structures, untrained)
    assert statistics["largest"] == {"atoms": 3, "neighbors": 2, "pairs": 3}
    assert statistics["neighbors"] == {"cutoff": 3.0, "average": pytest.approx(8 / 7)}
    assert statistics["force_rms"] == pytest.approx(2.0)
    assert statistics["n_forces"] == 1


def test_a_pretrained_model_is_corrected_by_what_it_leaves(statistics_of, untrained):
    """References that differ from the model by 0.5 eV per H and -3 eV per O give these corrections, and C is kept."""
    foundation = replace(untrained, pretrained=True, energy_shifts={1: -13.0, 6: -1000.0, 8: -2000.0})
    bare = [hydrogen(), water(), hydrogen(distance=0.8)]
    energies = [p.energy for p in predict(foundation, bare)]
    structures = [replace(s, energy=e + c) for s, e, c in zip(bare, energies, [1.0, -2.0, 1.0], strict=True)]
    statistics = statistics_of(structures, foundation)
    assert statistics["energy_shift_corrections"] == pytest.approx({"H": 0.5, "C": 0.0, "O": -3.0})
    assert statistics["energy_shifts"] == pytest.approx({"H": -12.5, "C": -1000.0, "O": -2003.0})
    assert statistics["residual"]["before"]["mae"] == pytest.approx((0.5 + 2 / 3 + 0.5) / 3)
    assert statistics["residual"]["after"]["mae"] == pytest.approx(0.0, abs=1e-9)


def test_structures_count_alike_per_atom_whatever_their_size(statistics_of, untrained):
    """H2 with 1 eV/atom and H4 with 0: per atom the best shift is 0.5 eV; totals would make it 0.2."""
    chain = Structure(np.ones(4, int), np.arange(4)[:, None] * [0.9, 0.0, 0.0], energy=0.0)
    statistics = statistics_of([hydrogen(2.0), chain], untrained)
    assert statistics["energy_shifts"]["H"] == pytest.approx(0.5)
    assert statistics["residual"]["after"] == pytest.approx({"mae": 0.5, "rmse": 0.5})


def test_one_molecule_names_its_elements(statistics_of, untrained):
    statistics = statistics_of([water(-9.0), water(-11.0)], untrained)
    assert statistics["composition"]["rank"] == 1
    assert statistics["composition"]["indistinguishable"] == [["H", "O"]]
    assert "H, O" in statistics["composition"]["note"]
    assert statistics["energy_shifts"] == pytest.approx({"H": -4.0, "C": 0.0, "O": -2.0})
    assert statistics["residual"]["after"] == pytest.approx({"mae": 1 / 3, "rmse": 1 / 3})


def test_without_energies_the_shifts_stay_and_the_file_says_so(statistics_of, untrained):
    foundation = replace(untrained, energy_shifts={1: -13.0, 6: -1000.0, 8: -2000.0}, pretrained=True)
    statistics = statistics_of([water(forces=np.ones((3, 3)))], foundation)
    assert statistics["energy_shifts"] == {"H": -13.0, "C": -1000.0, "O": -2000.0}
    assert statistics["n_energies"] == 0
    assert statistics["composition"]["note"] == "no structure has an energy: the shifts are unchanged"
    assert statistics["residual"] == {"before": None, "after": None}


def test_an_energy_of_weight_zero_does_not_count(statistics_of, untrained):
    structures = [hydrogen(-2.0), hydrogen(500.0, energy_weight=0.0)]
    statistics = statistics_of(structures, untrained)
    assert statistics["n_energies"] == 1
    assert statistics["energy_shifts"]["H"] == pytest.approx(-1.0)


def test_outliers_are_listed_by_their_frame(statistics_of, untrained):
    rng = np.random.default_rng(0)
    structures = [water(-9.0 + rng.normal(0, 0.03), rng.normal(0, 1, (3, 3)), source_index=10 * i) for i in range(40)]
    structures[7] = replace(structures[7], energy=structures[7].energy + 3.0)
    structures[21] = replace(structures[21], forces=structures[21].forces * 50)
    outliers = statistics_of(structures, untrained)["outliers"]
    assert [f["source_index"] for f in outliers["residual_per_atom"]["frames"]] == [70]
    assert [f["source_index"] for f in outliers["force_max"]["frames"]] == [210]
    assert outliers["force_max"]["frames"][0]["value"] > outliers["force_max"]["limit"]
    assert outliers["threshold"] == CONFIG.outlier_threshold


def test_an_unknown_element_ends_with_frame_file_and_known_elements(statistics_of, untrained):
    ammonia = Structure(np.array([7, 1]), np.array([[0.0, 0, 0], [1.0, 0, 0]]), energy=1.0, source_index=5)
    with pytest.raises(UserError, match=r"train\.h5: frame 5: N is unknown to .*\(it knows H, C, O\)"):
        statistics_of([water(-9.0), ammonia], untrained)


@pytest.mark.parametrize(
    ("weights", "scale", "message"),
    [(1e200, 1.0, "the model gives energy NaN or infinite"), (1.0, 1e150, r"the model's energy is -?\d\S+e\+\d+ eV")],
)
def test_model_energies_beyond_measure_name_file_and_frame(statistics_of, untrained, weights, scale, message):
    parameters = {k: weights * v for k, v in untrained.parameters.items()}
    config = untrained.config | {"scale": scale}
    foundation = replace(untrained, parameters=parameters, config=config, pretrained=True)
    with pytest.raises(UserError, match=rf"train\.h5: frame 0: {message}"):
        statistics_of([water(-9.0)], foundation)


def test_units_and_finite_json(statistics_of, untrained):
    statistics = statistics_of([hydrogen(-2.0)], untrained)
    assert json.loads(json.dumps(statistics, allow_nan=False)) == statistics
    assert statistics["units"]["forces"] == "eV/angstrom"
    assert statistics["force_rms"] is None


def written(folder, statistics):
    write_json(folder / "statistics.json", statistics)
    return folder / "statistics.json"


def test_apply_gives_a_model_from_scratch_its_scale(statistics_of, untrained, tmp_path):
    statistics = statistics_of([hydrogen(-2.0), water(-9.0, np.full((3, 3), 2.0))], untrained)
    potential = apply_statistics(untrained, written(tmp_path, statistics))
    assert potential.energy_shifts == pytest.approx({1: -1.0, 6: 0.0, 8: -7.0})
    assert potential.config["scale"] == pytest.approx(2.0)
    assert potential.config["avg_num_neighbors"] == pytest.approx(8 / 5)


def test_apply_changes_only_the_shifts_of_a_pretrained_model(statistics_of, untrained, tmp_path):
    foundation = replace(untrained, pretrained=True)
    statistics = statistics_of([hydrogen(-2.0), water(-9.0)], foundation)
    potential = apply_statistics(foundation, written(tmp_path, statistics))
    assert potential.config == foundation.config
    assert potential.energy_shifts[8] == statistics["energy_shifts"]["O"] != 0.0
