"""``models.NAME.flashcart`` and ``models.NAME.python``: what models of these architectures are made of."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from forgefield.config.base import OBJECT, AsNumber, NonNegative, PositiveInteger, Section

Degree = Annotated[int, Field(ge=0), AsNumber]
Widths = Annotated[list[PositiveInteger], Field(min_length=1)]


class FlashcartConfig(Section):
    """A FlashCart model to train from scratch: FlashCart's own keys, with the defaults of `flashcart-train`. Its scale
    and its average number of neighbors come from the statistics stage, and so do energy shifts."""

    r_min: NonNegative = 0.0
    """Lower end of the range of distances that the radial functions are mapped to, Å."""

    n_hidden_feats: PositiveInteger = 128
    """Channels of the node features, of each degree."""

    l_max_hidden_feats: Degree = 2
    """Highest degree l of the node features between layers."""

    l_max_edge_attrs: Degree = 3
    """Highest degree l of the directions of edges."""

    n_radial: PositiveInteger = 8
    """Number of Chebyshev functions of the distance."""

    n_interactions: PositiveInteger = 2
    """Number of message-passing layers."""

    correlation: PositiveInteger = 3
    """Highest degree of the products of a layer's features; 1: no products."""

    path_reduced_product: bool = False
    """Products of fewer paths, with a weight for each."""

    element_agnostic_interaction: bool = True
    """`false`: messages depend on the elements of both atoms."""

    element_agnostic_product: bool = True
    """`false`: weights of products depend on the element."""

    n_element_interaction_features: PositiveInteger | None = None
    """Width of the elements' embedding, needed with `element_agnostic_interaction: false`."""

    nonlinearity: bool = True
    """A gated nonlinearity after each message passing."""

    gate_activation: Literal["silu", "sigmoid"] = "sigmoid"
    """Activation of the gates."""

    gate_bias: bool = True
    """A bias in the linear layer that makes the gates."""

    layer_norm: bool = True
    """Features are divided by their root mean square in interactions and products."""

    hidden_radial: Widths = Field(default=[64, 64])
    """Widths of the hidden layers of the radial network."""

    hidden_readout: Widths = Field(default=[64, 64])
    """Widths of the hidden layers of the readout."""

    radial_mapping: Literal["cosine", "affine"] = "cosine"
    """How distances are mapped to the range of the Chebyshev functions."""

    cutoff_poly_order: Annotated[int, Field(ge=2), AsNumber] = 6
    """Exponent of the polynomial envelope at the cutoff."""

    recompute_radial: bool = False
    """Compute the last layer of the radial network again where its derivative is needed: less memory, more time."""

    use_triton: bool = True
    """FlashCart's fused Triton kernels on GPUs; a CPU does without."""

    @model_validator(mode="after")
    def _width_of_elements(self) -> Self:
        if not self.element_agnostic_interaction and self.n_element_interaction_features is None:
            raise ValueError(
                "n_element_interaction_features is missing, which element_agnostic_interaction: false needs; "
                "write a width such as 16"
            )
        return self


def _without_given(config: dict[str, Any]) -> dict[str, Any]:
    for key in ("elements", "r_max"):
        if key in config:
            raise ValueError(f"{key} is given to build by the model's own key {key}; write it there")
    return config


class PythonConfig(Section):
    """A model of your own code ([docs/pytorch_models.md](../docs/pytorch_models.md))."""

    object: Annotated[str, StringConstraints(pattern=OBJECT)] | None = None
    """Where its `build(config, statistics)` is: `MODULE:OBJECT`, a module that Python can import and a name in it."""

    config: Annotated[dict[str, Any], AfterValidator(_without_given)] = Field(default={})
    """Keys and values for `build`, which also gets the keys `elements` and `r_max` of the model."""
