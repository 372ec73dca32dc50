"""Predictions of one device and of two, in a process that sees two, of batches that differ in size and are three."""

import jax
import numpy as np

from forgefield.models.inference import Predictor
from forgefield.models.mace.initial import initial_potential
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.samples import sample_structures

jax.config.update("jax_num_cpu_devices", 2)
settings = MaceSettings(
    r_max=3.0,
    hidden_channels=2,
    l_max=1,
    correlation=(1,),
    interactions=("RealAgnosticResidualInteractionBlock",),
    n_bessel=4,
    polynomial_cutoff=5,
    radial_mlp=(4,),
    mlp_channels=2,
)
potential = initial_potential((1, 6, 8), settings, 0)
structures = sample_structures((1, 6, 8))[:7]
one, two = (list(Predictor(potential, batch=3, wanted="virial", devices=n)(structures)) for n in (1, 2))
for a, b in zip(one, two, strict=True):
    np.testing.assert_allclose(b.energy, a.energy, rtol=1e-12)
    np.testing.assert_allclose(b.forces, a.forces, atol=1e-12)
    assert (a.stress is None) == (b.stress is None)
    if a.stress is not None:
        np.testing.assert_allclose(b.stress, a.stress, atol=1e-12)
predictor = Predictor(potential, devices=2)
assert len(predictor._function._parameters["readouts.0.linear.weight"].devices()) == 2
print("same", len(two))
