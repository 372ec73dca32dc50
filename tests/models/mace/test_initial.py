import numpy as np

from forgefield.models.mace.settings import MaceSettings


def test_parameters_are_distributed_as_in_mace_torch(make_potential):
    potential = make_potential(hidden_channels=32)
    contraction = "products.0.symmetric_contractions.contractions.0."
    spread = {name: value.std() for name, value in potential.parameters.items() if value.size > 200}
    paths = {contraction + "weights_max": 5, contraction + "weights.0": 3}
    for name, value in spread.items():
        expected = 1 / paths.get(name.replace("products.1", "products.0"), 1)
        np.testing.assert_allclose(value, expected, rtol=0.15, err_msg=name)


def test_seed_decides(make_potential):
    first, again, other = (make_potential(seed).parameters["readouts.0.linear.weight"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_config_is_complete_json(potential):
    settings = MaceSettings.model_validate(potential.config)
    assert settings.model_dump(mode="json") == potential.config
    assert not potential.pretrained
    assert dict(potential.energy_shifts) == {1: 0.0, 6: 0.0, 8: 0.0}
