"""Whether both sides compute the same, without which no time means anything."""

from collections.abc import Mapping

import numpy as np

# largest differences: relative to the largest value of each array, forces in float32 in eV/Å
LIMITS = {
    "float64": {"energy": 1e-8, "forces": 1e-8, "gradient": 1e-8, "loss": 1e-8, "update": 1e-6},
    "float32": {"energy": 1e-5, "forces": 1e-4, "gradient": 1e-3, "loss": 1e-3, "update": 1e-2},
}


class DisagreementError(Exception):
    """The two sides differ; the message says where and by how much."""


def differences(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray], precision: str) -> dict[str, float]:
    """The largest differences in energies, forces, loss, its gradient (over all parameters) and later losses.

    Raises:
        DisagreementError: one is above its limit, or the sides have other arrays.
    """
    if ours.keys() != theirs.keys():
        raise DisagreementError(f"one side only has {sorted(ours.keys() ^ theirs.keys())}")
    found: dict[str, float] = {}
    for name, expected in theirs.items():
        kind = name.split("/")[0]
        difference = np.abs(ours[name].reshape(expected.shape) - expected).max()
        if (kind, precision) != ("forces", "float32"):
            difference /= max(np.abs(expected).max(), np.finfo(expected.dtype).tiny)
        # a comparison that NaN fails
        if not difference <= LIMITS[precision][kind]:
            raise DisagreementError(f"{name} differs by {difference:.1e}, more than {LIMITS[precision][kind]:g}")
        found[kind] = max(found.get(kind, 0.0), float(difference))
    return found
