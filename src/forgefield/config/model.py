"""``models.NAME``: a pretrained foundation model, or the shape of a model to train from scratch."""

from typing import Annotated, Any, Literal, Self

from ase.data import atomic_numbers
from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from forgefield.config.base import AsNumber, Positive, PositiveInteger, Section, Seed, Sha256


def _elements(symbols: list[str]) -> list[str]:
    for symbol in symbols:
        if atomic_numbers.get(symbol, 0) < 1:
            raise ValueError(f"expected chemical symbols such as H or Cl, found {symbol!r}")
    if len(set(symbols)) < len(symbols):
        raise ValueError("an element is listed twice")
    return sorted(symbols, key=atomic_numbers.__getitem__)


class ModelConfig(Section):
    """One model: with `foundation` a pretrained one, which has its own shape; without, one to train from scratch."""

    architecture: Literal["mace"] = "mace"
    """The kind of model."""

    foundation: str | None = None
    """Path of the pretrained model: a directory made by forgefield or a mace-torch `.model` file; or the URL of a
    `.model` file, which is loaded once and kept under `results/downloads`. Not given: random initial parameters."""

    sha256: Sha256 | None = None
    """The sha256 of a `.model` file. Reading such a file can run code in it, so it is read only if its sha256 is listed
    here."""

    head: Annotated[str, Field(min_length=1)] | None = None
    """Of a `.model` file with several heads (one for each level of theory, as a rule), the one to fine-tune."""

    elements: Annotated[list[str], Field(min_length=1), AfterValidator(_elements)] | None = None
    """From scratch: chemical symbols of the elements that the model is to know."""

    r_max: Positive = 5.0
    """From scratch: cutoff radius, Å."""

    hidden_channels: PositiveInteger = 64
    """From scratch: channels of the node features."""

    hidden_l_max: Annotated[int, Field(ge=0, le=3), AsNumber] = 0
    """From scratch: highest degree l of the node features of all layers but the last, which has scalars only."""

    l_max: Annotated[int, Field(ge=0, le=4), AsNumber] = 3
    """From scratch: highest degree l of the spherical harmonics of edges."""

    correlation: Annotated[int, Field(ge=1, le=4), AsNumber] = 3
    """From scratch: correlation order of each layer's product basis; its body order is one more."""

    n_interactions: PositiveInteger = 2
    """From scratch: number of message-passing layers."""

    n_bessel: PositiveInteger = 8
    """From scratch: number of Bessel functions of the distance."""

    polynomial_cutoff: PositiveInteger = 5
    """From scratch: exponent p of the polynomial envelope at the cutoff."""

    radial_mlp: Annotated[list[PositiveInteger], Field(min_length=1)] = Field(default=[64, 64, 64])
    """From scratch: widths of the hidden layers of the radial network."""

    mlp_channels: PositiveInteger = 16
    """From scratch: width of the hidden layer of the last readout."""

    seed: Seed = 0
    """From scratch: seed of the initial parameters."""

    @model_validator(mode="after")
    def _foundation_or_scratch(self) -> Self:
        given = sorted(SCRATCH & self.model_fields_set, key=list(type(self).model_fields).index)
        if self.foundation and given:
            raise ValueError(
                f"foundation and {given[0]} are both given, but a foundation model has its own; remove one"
            )
        if not self.foundation and not self.elements:
            raise ValueError("foundation is missing; give a pretrained model, or elements to train from scratch")
        if self.hidden_l_max > self.l_max:
            raise ValueError(f"hidden_l_max is {self.hidden_l_max}, expected at most l_max, which is {self.l_max}")
        for key in ("sha256", "head"):
            if getattr(self, key) and not self.foundation:
                raise ValueError(f"{key} is given without foundation; remove it or add foundation")
        return self

    @model_serializer(mode="wrap")
    def _without_unused(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        unused = SCRATCH if self.foundation else frozenset()
        return {key: value for key, value in handler(self).items() if key not in unused}


PRETRAINED = {"architecture", "foundation", "sha256", "head"}
"""The keys of a foundation model."""

SCRATCH = frozenset(ModelConfig.model_fields) - PRETRAINED
"""The keys of a model trained from scratch."""
