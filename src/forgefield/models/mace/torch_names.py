"""What irreps and activations of a mace-torch model are called, alike for live modules and for records."""

from collections.abc import Iterable
from typing import Any, NamedTuple


class Natural(NamedTuple):
    """Features ``channels x (0e + 1o + ... + l_max)``: of each degree as many, with the parity of its harmonics."""

    channels: int
    l_max: int


def irreps_terms(irreps: Any) -> list[tuple[int, int, int]]:
    """Multiplicity, degree and parity of each term."""
    pairs = [(mul, _content(irrep)) for mul, irrep in map(_content, _content(irreps))]
    return [(mul, degree, parity) for mul, (degree, parity) in pairs]


def irreps_text(irreps: Any) -> str:
    return "+".join(f"{mul}x{degree}{'e' if parity == 1 else 'o'}" for mul, degree, parity in irreps_terms(irreps))


def natural(irreps: Any) -> Natural | None:
    """How many channels and degrees, or None for features of any other kind."""
    terms = irreps_terms(irreps)
    channels = terms[0][0] if terms else 0
    expected = [(channels, degree, (-1) ** degree) for degree in range(len(terms))]
    return Natural(channels, len(terms) - 1) if terms and terms == expected else None


def activation_name(function: Any) -> str | None:
    """Lower case; functions of ``torch`` itself are pickled as an attribute that is looked up."""
    if function is None:
        return None
    if type(function).__name__ == "getattr":
        return function.args[1]
    return getattr(function, "__name__", type(function).__name__).lower()


def _content(irreps: Any) -> Iterable[Any]:
    """The tuple that e3nn's Irreps, their terms and their irreps are; a record has it as its argument."""
    return irreps if isinstance(irreps, tuple) else irreps.args[0]
