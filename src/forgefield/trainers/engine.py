"""What the training of epochs, the same for every engine, asks of an engine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from forgefield.data.reader import Source


class NotFiniteError(ArithmeticError):
    """The loss or its gradient is NaN or infinite.

    Attributes:
        where: such as ``step 3``, of the epoch and counted from 1.
        frames: the batch's structures, in words.
        state: of the training before that step, where the engine keeps it.
    """

    def __init__(self, where: str, frames: str, state: Any = None) -> None:
        super().__init__(f"{where}: the loss or its gradient is not finite, in {frames}")
        self.where, self.frames, self.state = where, frames, state


class StepDone(NamedTuple):
    """A step of training.

    Attributes:
        loss: of its batch, before the update.
        waited: seconds for the batch.
        stop: whether a process asks to end the training, of which all hear by the same step.
        settled: whether the engine's state is that after this step, and not one further.
    """

    loss: float
    waited: float
    stop: bool
    settled: bool


class EpochLoader(Protocol):
    """Batches of a source, epoch by epoch; an engine knows more of its own."""

    source: Source

    def __len__(self) -> int:
        """Batches per epoch."""
        ...

    def plan(self, epochs: int) -> None:
        """Prepare epochs 0 to ``epochs - 1``."""
        ...


class Engine(ABC):
    """Makes steps and evaluates, and gives and takes all that these change."""

    @property
    @abstractmethod
    def step(self) -> int:
        """Optimizer steps done."""

    @property
    @abstractmethod
    def best_params(self) -> Any:
        """The (averaged) parameters of the epoch with the lowest validation loss, or of the last without validation."""

    @property
    def best_buffers(self) -> Mapping[str, np.ndarray]:
        """Arrays of the model that no optimizer changes, but its own code has, after that epoch."""
        return {}

    @abstractmethod
    def _steps(self, epoch: int, start: int, pause: Callable[[int], bool]) -> Iterator[StepDone]:
        """The steps of an epoch after the first ``start``, until ``self._stop`` is asked on any process.

        Args:
            epoch: counted from 0.
            start: steps that were done before.
            pause: whether the state after so many steps is to be saved, so that the step must be settled.

        Raises:
            NotFiniteError: before the parameters are changed.
        """

    @abstractmethod
    def _validate(self) -> dict[str, float]:
        """Metrics on the validation data, see :func:`forgefield.trainers.metrics.metrics`.

        Raises:
            NotFiniteError: a loss is not finite.
            StopAskedError: a process is asked to stop.
        """

    @abstractmethod
    def _lr(self) -> float | None:
        """The learning rate of the last step."""

    @abstractmethod
    def _keep_best(self) -> None:
        """Copy the parameters as the best so far."""

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """Copies of everything that is needed to continue as if nothing had happened, besides the record."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, np.ndarray], path: Path) -> None:
        """Continue from :meth:`_arrays`, read from ``path``; UserError where they do not fit."""
