"""Untrained MACE models."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from ase.data import atomic_numbers

from forgefield.models.mace.covariants import coupling_tensor
from forgefield.models.mace.names import RADIAL, buffer_name
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.mace.shapes import parameter_shapes
from forgefield.models.potential import Potential

if TYPE_CHECKING:
    from forgefield.config.model import ModelConfig


def from_scratch(config: "ModelConfig") -> Potential:
    """A MACE model with random parameters: a first layer without, later layers with a residual connection."""
    residual = ("RealAgnosticResidualInteractionBlock",) * (config.n_interactions - 1)
    settings = MaceSettings(
        r_max=config.r_max,
        hidden_channels=config.hidden_channels,
        hidden_l_max=(config.hidden_l_max,) * (config.n_interactions - 1) + (0,),
        l_max=config.l_max,
        correlation=(config.correlation,) * config.n_interactions,
        interactions=("RealAgnosticInteractionBlock", *residual),
        n_bessel=config.n_bessel,
        polynomial_cutoff=config.polynomial_cutoff,
        radial_mlp=tuple(config.radial_mlp),
        mlp_channels=config.mlp_channels,
    )
    return initial_potential([atomic_numbers[symbol] for symbol in config.elements], settings, config.seed)


def initial_potential(elements: Sequence[int], settings: MaceSettings, seed: int) -> Potential:
    """A MACE model with random parameters, distributed as mace-torch's: normal, contraction weights / number of paths.

    It can be trained as it is; set ``avg_num_neighbors``, ``scale`` and ``shift`` of its ``config`` and its energy
    shifts from the statistics of a training set.
    """
    generator = np.random.default_rng(seed)
    buffers = initial_buffers(settings)
    parameters = {
        name: generator.standard_normal(shape) / (shape[1] if ".symmetric_contractions." in name else 1)
        for name, shape in parameter_shapes(len(elements), settings, buffers).items()
    }
    return Potential(
        architecture="mace",
        config=settings.model_dump(mode="json"),
        parameters=parameters,
        buffers=buffers,
        energy_shifts=dict.fromkeys(sorted(elements), 0.0),
        cutoff=settings.r_max,
        pretrained=False,
        source={"kind": "scratch", "seed": seed},
    )


def initial_buffers(settings: MaceSettings) -> dict[str, np.ndarray]:
    """Frequencies and norm of the Bessel functions, and each layer's U tensors."""
    buffers = {
        RADIAL + "bessel_weights": np.pi / settings.r_max * np.arange(1, settings.n_bessel + 1, dtype=np.float64),
        RADIAL + "prefactor": np.array(np.sqrt(2.0 / settings.r_max)),
    }
    for layer in settings.layers:
        for degree, order in itertools.product(range(layer.output_l_max + 1), range(1, layer.correlation + 1)):
            tensor = coupling_tensor(settings.l_max, order, degree)
            buffers[buffer_name(layer.index, degree, order)] = tensor
    return buffers
