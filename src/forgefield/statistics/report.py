"""Statistics in the lines of a log."""

from collections.abc import Iterator, Mapping
from typing import Any

NAMED = 5
WHAT = {"force_max": ("largest force", "eV/Å"), "residual_per_atom": ("energy", "eV/atom off the fit")}


def log_lines(statistics: Mapping[str, Any]) -> Iterator[str]:
    """Where the energy shifts are from and what they leave, and the outliers with their frame numbers."""
    shifts = ", ".join(f"{symbol} {energy:.6g}" for symbol, energy in statistics["energy_shifts"].items())
    yield f"energy shifts (eV) by {statistics['energy_shifts_from']}: {shifts}"
    if after := statistics["residual"]["after"]:
        yield f"they leave an error of {1e3 * after['mae']:.4g} meV/atom (MAE); {statistics['composition']['note']}"
    for key, (name, unit) in WHAT.items():
        outliers = statistics["outliers"][key]
        if outliers["count"]:
            first = ", ".join(str(frame["source_index"]) for frame in outliers["frames"][:NAMED])
            more = ", ..." if outliers["count"] > NAMED else ""
            yield f"{outliers['count']} outliers by {name}, beyond {outliers['limit']:.4g} {unit}: frames {first}{more}"
