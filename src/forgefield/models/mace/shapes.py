"""mace-torch's name and shape of every parameter."""

import itertools
from collections.abc import Mapping

import numpy as np

from forgefield.models.mace.names import buffer_name, weight_name
from forgefield.models.mace.settings import Layer, MaceSettings

# widths that mace-torch does not leave to its user
ATTENTION_CHANNELS, ATTENTION_MLP, DENSITY_WIDTH = 64, (256, 256, 256), 64

Shapes = dict[str, tuple[int, ...]]


def parameter_shapes(n_elements: int, settings: MaceSettings, buffers: Mapping[str, np.ndarray]) -> Shapes:
    """Names and shapes of everything that training changes; ``buffers`` hold the U tensors, which count the paths."""
    shapes: Shapes = {"node_embedding.linear.weight": (n_elements * settings.hidden_channels,)}
    for layer in settings.layers:
        shapes |= _interaction_shapes(layer, n_elements, settings)
        shapes |= _product_shapes(layer, n_elements, settings, buffers)
    return shapes | _readout_shapes(settings)


def radial_widths(layer: Layer, settings: MaceSettings) -> tuple[int, ...]:
    """Widths of the network that gives a layer's convolution weights, its input and output included."""
    hidden, inputs = settings.radial_mlp, settings.n_bessel
    if "Att" in layer.interaction:
        hidden, inputs = ATTENTION_MLP, inputs + 2 * ATTENTION_CHANNELS
    elif "NonLinear" in layer.interaction:
        inputs += 2 * settings.hidden_channels
    return (inputs, *hidden, len(layer.paths) * layer.source_channels)


def _interaction_shapes(layer: Layer, n_elements: int, settings: MaceSettings) -> Shapes:
    channels, sources = settings.hidden_channels, layer.source_channels
    widths = radial_widths(layer, settings)
    both = min(layer.input_l_max, layer.source_l_max) + 1
    kept = min(layer.input_l_max, layer.output_l_max) + 1
    shapes: Shapes = {"linear_up.weight": (both * channels * sources,)}
    if "NonLinear" in layer.interaction:
        shapes |= _nonlinear_shapes(layer, n_elements, settings, widths)
        shapes["skip_tp.weight"] = (kept * channels * channels,)
    else:
        shapes |= {f"conv_tp_weights.layer{i}.weight": widths[i : i + 2] for i in range(len(widths) - 1)}
        shapes["linear.weight"] = (len(layer.paths) * sources * channels,)
        if "Density" in layer.interaction:
            shapes["density_fn.layer0.weight"] = (settings.n_bessel, 1)
        if "Att" in layer.interaction:
            shapes["linear_down.weight"] = (channels * ATTENTION_CHANNELS,)
            shapes["skip_linear.weight"] = (kept * channels * channels,)
        else:
            degrees = kept if layer.residual else settings.l_max + 1
            shapes["skip_tp.weight"] = (degrees * channels * n_elements * channels,)
    return {f"interactions.{layer.index}.{name}": shape for name, shape in shapes.items()}


def _nonlinear_shapes(layer: Layer, n_elements: int, settings: MaceSettings, widths: tuple[int, ...]) -> Shapes:
    channels, sources, degrees = settings.hidden_channels, layer.source_channels, settings.l_max + 1
    scalars = sum(path.message == 0 for path in layer.paths)
    # scalars come with one gate for each higher degree
    mixed = scalars * degrees + len(layer.paths) - scalars
    residual = degrees + min(layer.source_l_max, settings.l_max)
    return {
        "source_embedding.weight": (n_elements * channels,),
        "target_embedding.weight": (n_elements * channels,),
        "linear_res.weight": (residual * sources * channels,),
        "linear_1.weight": (mixed * sources * channels,),
        "linear_2.weight": (degrees * channels * channels,),
        "alpha": (),
        "beta": (),
        **_mlp_shapes("conv_tp_weights", widths),
        **_mlp_shapes("density_fn", (widths[0], DENSITY_WIDTH, 1)),
    }


def _mlp_shapes(prefix: str, widths: tuple[int, ...]) -> Shapes:
    """A network of affine maps, each but the last followed by a layer norm and SiLU."""
    shapes: Shapes = {}
    for i, (into, out) in enumerate(itertools.pairwise(widths)):
        shapes |= {f"{prefix}.net.{3 * i}.weight": (out, into), f"{prefix}.net.{3 * i}.bias": (out,)}
        if i < len(widths) - 2:
            shapes |= {f"{prefix}.net.{3 * i + 1}.{name}": (out,) for name in ("weight", "bias")}
    return shapes


def _product_shapes(layer: Layer, n_elements: int, settings: MaceSettings, buffers: Mapping[str, np.ndarray]) -> Shapes:
    channels, species = settings.hidden_channels, 1 if settings.agnostic_product else n_elements
    shapes: Shapes = {}
    for degree in range(layer.output_l_max + 1):
        for order in range(layer.correlation, 0, -1):
            paths = buffers[buffer_name(layer.index, degree, order)].shape[-1]
            shapes[weight_name(layer.index, degree, order, layer.correlation)] = (species, paths, channels)
    shapes[f"products.{layer.index}.linear.weight"] = ((layer.output_l_max + 1) * channels * channels,)
    return shapes


def _readout_shapes(settings: MaceSettings) -> Shapes:
    channels, hidden = settings.hidden_channels, settings.mlp_channels
    shapes: Shapes = {}
    for i, name in enumerate(settings.readouts):
        prefix = f"readouts.{i}."
        if name == "LinearReadoutBlock":
            shapes[prefix + "linear.weight"] = (channels,)
            continue
        shapes |= {prefix + "linear_1.weight": (channels * hidden,), prefix + "linear_2.weight": (hidden,)}
        if name == "NonLinearBiasReadoutBlock":
            shapes |= {prefix + "linear_mid.weight": (hidden * hidden,), prefix + "linear_mid.bias": (hidden,)}
            shapes[prefix + "linear_2.bias"] = (1,)
    return shapes
