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

from forgefield.config.architectures import FlashcartConfig, PythonConfig
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

    architecture: Literal["mace", "flashcart", "python"] = "mace"
    """The kind of model: `mace`; `flashcart`, or `python` for one of your own code, both only for backend `fabric`."""

    foundation: str | None = None
    """Path of the pretrained model: a directory made by forgefield, a mace-torch `.model` file or a directory that
    FlashCart wrote (`model_config.yaml` and `model.pt`); or the URL of a `.model` file, which is loaded once and kept
    under `results/downloads`. Not given: random initial parameters."""

    sha256: Sha256 | None = None
    """The sha256 of a `.model` file, or of the weights in a directory. Reading a `.model` file can run code in it, so
    it is read only if its sha256 is listed here; the weights of directories are read without running any."""

    head: Annotated[str, Field(min_length=1)] | None = None
    """Of a `.model` file with several heads (one for each level of theory, as a rule), the one to fine-tune."""

    elements: Annotated[list[str], Field(min_length=1), AfterValidator(_elements)] | None = None
    """From scratch: chemical symbols of the elements that the model is to know."""

    r_max: Positive = 5.0
    """From scratch: cutoff radius, Å."""

    seed: Seed = 0
    """From scratch: seed of the initial parameters."""

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

    flashcart: FlashcartConfig = FlashcartConfig()
    """From scratch: what a model of architecture `flashcart` is made of."""

    python: PythonConfig = PythonConfig()
    """From scratch: where a model of architecture `python` is, and its settings."""

    @model_validator(mode="after")
    def _keys_of_its_architecture(self) -> Self:
        for other, keys in OWN.items():
            if other != self.architecture and (foreign := self._given(keys)):
                raise ValueError(
                    f"{foreign} is a key of architecture {other}, but architecture is {self.architecture}; "
                    f"remove it or write architecture: {other}"
                )
        return self

    @model_validator(mode="after")
    def _foundation_or_scratch(self) -> Self:
        given = self._given(SCRATCH)
        if self.foundation and given:
            raise ValueError(f"foundation and {given} are both given, but a foundation model has its own; remove one")
        if not self.foundation and not self.elements:
            raise ValueError("foundation is missing; give a pretrained model, or elements to train from scratch")
        for key in ("sha256", "head"):
            if getattr(self, key) and not self.foundation:
                raise ValueError(f"{key} is given without foundation; remove it or add foundation")
        return self

    @model_validator(mode="after")
    def _shape(self) -> Self:
        if self.hidden_l_max > self.l_max:
            raise ValueError(f"hidden_l_max is {self.hidden_l_max}, expected at most l_max, which is {self.l_max}")
        if self.flashcart.r_min >= self.r_max:
            raise ValueError(f"flashcart.r_min is {self.flashcart.r_min}, expected less than r_max, {self.r_max}")
        if self.architecture == "python" and not self.foundation and not self.python.object:
            raise ValueError("python.object is missing; write MODULE:OBJECT, which has build(config, statistics)")
        return self

    def _given(self, keys: frozenset[str]) -> str | None:
        """The first of these keys that the user gave."""
        return next((key for key in type(self).model_fields if key in keys & self.model_fields_set), None)

    @model_serializer(mode="wrap")
    def _without_unused(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        foreign = (keys for other, keys in OWN.items() if other != self.architecture)
        unused = frozenset(SCRATCH if self.foundation else ()).union(*foreign)
        return {key: value for key, value in handler(self).items() if key not in unused}


PRETRAINED = {"architecture", "foundation", "sha256", "head"}
"""The keys of a foundation model."""

SCRATCH = frozenset(ModelConfig.model_fields) - PRETRAINED
"""The keys of a model trained from scratch."""

OWN = {"flashcart": frozenset({"flashcart"}), "python": frozenset({"python"})}
OWN["mace"] = SCRATCH - {"elements", "r_max", "seed"} - OWN["flashcart"] - OWN["python"] | {"head"}
"""The keys that only one architecture has."""
