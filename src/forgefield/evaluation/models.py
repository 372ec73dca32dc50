"""The models that a run is evaluated with: those that differ in numbers alone share neighbor lists and compilation."""

from collections.abc import Mapping, Sequence
from typing import Any

from forgefield.data.structures import Structure
from forgefield.models.inference import Prediction, Predictor, Prepared
from forgefield.models.potential import Potential

Batches = dict[str, list[Prepared]]


class Models:
    """Several potentials that compute the same structures.

    Args:
        potentials: by variant.
        batch: structures that a device computes at once.
        settings: see :class:`~forgefield.models.inference.Predictor`.

    Attributes:
        devices: local devices, each of which computes a batch at the same time.
    """

    def __init__(self, potentials: Mapping[str, Potential], *, batch: int, devices: int, **settings: Any) -> None:
        self.batch, self.devices = batch, devices
        self._predictors: dict[str, Predictor] = {}
        # for each variant, the one whose batches it computes
        self._leaders: dict[str, str] = {}
        for variant, potential in potentials.items():
            for leader in dict.fromkeys(self._leaders.values()):
                if alike := self._predictors[leader].alike(potential):
                    self._predictors[variant], self._leaders[variant] = alike, leader
                    break
            else:
                self._predictors[variant] = Predictor(potential, batch=batch, devices=devices, **settings)
                self._leaders[variant] = variant

    @property
    def variants(self) -> list[str]:
        return list(self._predictors)

    def prepared(self, batches: Sequence[Sequence[Structure]]) -> Batches:
        """Neighbor lists of all structures, packed batch by batch; a batch that is too large for memory is several."""
        found = {}
        for leader in dict.fromkeys(self._leaders.values()):
            predictor = self._predictors[leader]
            found[leader] = [*predictor.prepared(group for batch in batches for group in predictor.groups(batch))]
        return found

    def predict(self, variant: str, batches: Batches) -> list[Prediction]:
        """What a variant says of the structures that were prepared, in order."""
        predictor = self._predictors[variant]
        return [p for prepared in batches[self._leaders[variant]] for p in predictor.predict(prepared)]
