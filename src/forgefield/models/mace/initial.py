"""Untrained MACE models."""

from collections.abc import Mapping, Sequence

import numpy as np

from forgefield.models.mace.invariants import coupling_tensor
from forgefield.models.mace.names import BESSEL, buffer_name, weight_name
from forgefield.models.mace.settings import MaceSettings
from forgefield.models.potential import Potential


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
        BESSEL + "bessel_weights": np.pi / settings.r_max * np.arange(1, settings.n_bessel + 1, dtype=np.float64),
        BESSEL + "prefactor": np.array(np.sqrt(2.0 / settings.r_max)),
    }
    tensors = {order: coupling_tensor(settings.l_max, order) for order in range(1, max(settings.correlation) + 1)}
    for layer, correlation in enumerate(settings.correlation):
        buffers |= {buffer_name(layer, order): tensors[order] for order in range(1, correlation + 1)}
    return buffers


def parameter_shapes(
    n_elements: int, settings: MaceSettings, buffers: Mapping[str, np.ndarray]
) -> dict[str, tuple[int, ...]]:
    """mace-torch's name and shape of every parameter."""
    channels, degrees = settings.hidden_channels, settings.l_max + 1
    shapes: dict[str, tuple[int, ...]] = {"node_embedding.linear.weight": (n_elements * channels,)}
    widths = (settings.n_bessel, *settings.radial_mlp, degrees * channels)
    for layer, correlation in enumerate(settings.correlation):
        prefix = f"interactions.{layer}."
        residual = settings.interactions[layer] == "RealAgnosticResidualInteractionBlock"
        shapes[prefix + "linear_up.weight"] = (channels * channels,)
        for i in range(len(widths) - 1):
            shapes[f"{prefix}conv_tp_weights.layer{i}.weight"] = widths[i : i + 2]
        shapes[prefix + "linear.weight"] = (degrees * channels * channels,)
        shapes[prefix + "skip_tp.weight"] = ((1 if residual else degrees) * channels * n_elements * channels,)
        for order in range(correlation, 0, -1):
            paths = buffers[buffer_name(layer, order)].shape[-1]
            shapes[weight_name(layer, order, correlation)] = (n_elements, paths, channels)
        shapes[f"products.{layer}.linear.weight"] = (channels * channels,)
    return shapes | _readout_shapes(settings)


def _readout_shapes(settings: MaceSettings) -> dict[str, tuple[int, ...]]:
    channels, hidden = settings.hidden_channels, settings.mlp_channels
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(max(settings.n_layers - 1, 1)):
        shapes[f"readouts.{layer}.linear.weight"] = (channels,)
    if settings.n_layers > 1:
        last = f"readouts.{settings.n_layers - 1}."
        shapes |= {last + "linear_1.weight": (channels * hidden,), last + "linear_2.weight": (hidden,)}
    return shapes
