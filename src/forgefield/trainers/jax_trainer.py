"""What a training by JAX does: steps and evaluation on the devices, its state, and files of parameters."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import optax

from forgefield.data.loaders import BatchLoader
from forgefield.data.targets import Targets
from forgefield.errors import UserError
from forgefield.files import atomic_file
from forgefield.trainers import epochs as loops
from forgefield.trainers.engine import NotFiniteError, StepDone
from forgefield.trainers.epoch_trainer import EpochTrainer
from forgefield.trainers.losses import Loss
from forgefield.trainers.optimizers import current_lr
from forgefield.trainers.parallel import Parallelism
from forgefield.trainers.record import TrainingRecord
from forgefield.trainers.replicas import check_replicas
from forgefield.trainers.steps import Templates, TrainState, evaluate_step, train_step
from forgefield.trainers.trees import load_arrays, named_arrays, save_arrays, tree_of

Stage = Literal["training", "validation", "testing"]
STAGES = ("training", "validation", "testing")


class JaxTrainer(EpochTrainer):
    """Minimizes a loss over the batches of loaders, on devices that hold the same parameters.

    Args:
        init_params: a pytree of arrays.
        optimizer: any optax optimizer.
        templates, loss: what is predicted, and how it is compared with the labels.
        targets: what the loaders read besides a structure's own labels and weights.
        parallel: the devices that share every batch.
        ema, penalty_fn, check_replicas_every: see :class:`~forgefield.trainers.force_matching.ForceMatching`.
        records: see :class:`~forgefield.trainers.epoch_trainer.EpochTrainer`.
    """

    def __init__(
        self,
        init_params: Any,
        optimizer: optax.GradientTransformation,
        *,
        templates: Templates,
        loss: Loss,
        targets: Targets,
        parallel: Parallelism,
        ema: float | None,
        penalty_fn: Callable[[Any], jax.Array] | None,
        check_replicas_every: int | None,
        **records: Any,
    ) -> None:
        super().__init__(processes=parallel, **records)
        self.targets = targets
        self._optimizer, self._templates, self._loss, self._parallel = optimizer, templates, loss, parallel
        self._ema, self._penalty, self._check_every = ema, penalty_fn, check_replicas_every
        self._start_from(init_params)

    def set_loader(self, loader: BatchLoader, stage: Stage = "training") -> None:
        """Give the batches of one stage."""
        if stage not in STAGES:
            raise UserError(f"stage: {stage!r} is none of {', '.join(STAGES)}")
        own = self._parallel
        if (loader.parts, loader.local_parts) != (own.parts, own.local_parts):
            raise UserError(f"loader: it makes {loader.parts} parts for {own.parts} devices; they must be equal")
        if loader.targets != self.targets:
            raise UserError("loader: it was made for other targets or weights; make it with targets=trainer.targets")
        self._loaders[stage] = loader
        # whether virials are computed depends on the data
        for compiled in ("_train_step", "_evaluate_step"):
            self.__dict__.pop(compiled, None)

    # -- training ------------------------------------------------------------------------------------------------

    def _steps(self, epoch: int, start: int, pause: Callable[[int], bool]) -> Iterator[StepDone]:
        loader, watch = self._loaders["training"], loops.Watch(self._asked, pause, self._check)
        try:
            steps = loops.train_steps(self._train_step, self._state, loader, epoch, self._parallel, watch, start)
            for self._state, done in steps:
                yield done
        except NotFiniteError as error:
            self._state = error.state
            raise

    def _asked(self) -> bool:
        return self._stop.asked

    def _check(self, state: TrainState) -> None:
        if self._check_every and int(state.step) % self._check_every == 0:
            check_replicas(state, self._parallel)

    def _validate(self) -> dict[str, float]:
        return self._metrics("validation", self._validated, self._asked)

    def _lr(self) -> float | None:
        return current_lr(self._state.opt_state)

    def _keep_best(self) -> None:
        self._best = _host_copy(self._validated)

    @cached_property
    def _train_step(self) -> Any:
        settings = {"ema": self._ema, "virial": self._virial, "penalty": self._penalty}
        return train_step(self._templates, self._optimizer, self._loss, self._parallel, **settings)

    @cached_property
    def _evaluate_step(self) -> Any:
        return evaluate_step(self._templates, self._loss, self._parallel, virial=self._virial)

    @property
    def _virial(self) -> bool:
        """Whether the virial term is computed."""
        wanted = self._loss.gammas.get("virial", 0.0) > 0
        return wanted and any(loader.source.has_virial for loader in self._loaders.values())

    @property
    def _validated(self) -> Any:
        """The parameters that are validated: the moving average where there is one."""
        return self._state.params if self._ema is None else self._state.average

    def _packing(self) -> str:
        loader = self._loaders["training"]
        atoms, pairs, neighbors = (f"{100 * share:.0f} %" for share in loader.filled)
        count = len(loader.capacities)
        return (
            f"batches are packed into {count} shape{'s' if count > 1 else ''}; "
            f"of what is computed, {pairs} of pairs, {atoms} of atoms and {neighbors} of neighbor slots are real"
        )

    def evaluate(self, stage: Stage = "testing") -> dict[str, float]:
        """Metrics of :attr:`best_params` on the data of a stage, each structure counted once.

        Returns:
            See :func:`forgefield.trainers.metrics.metrics`.

        Raises:
            UserError: no such data, or the loss is not finite, which names the frames of its batch.
        """
        if stage not in STAGES:
            raise UserError(f"stage: expected one of {', '.join(STAGES)}, found {str(stage)[:40]!r}")
        if stage not in self._loaders:
            raise UserError(f"no {stage} data; call set_dataset(dataset, {stage!r}) first")
        try:
            return self._metrics(stage, self._parallel.replicated(self._best))
        except NotFiniteError as error:
            raise UserError(f"{stage} data, {error}; check the labels of these frames") from None

    def _metrics(self, stage: str, params: Any, asked: Callable[[], bool] = lambda: False) -> dict[str, float]:
        loader = self._loaders[stage]
        if not loader.capacities:
            loader.plan(1)
        return loops.evaluate(self._evaluate_step, params, loader, self._parallel, asked)

    # -- parameters and files ------------------------------------------------------------------------------------

    @property
    def params(self) -> Any:
        """The parameters as the last step left them, a copy on every device."""
        return self._parallel.replicated(self._state.params)

    @property
    def best_params(self) -> Any:
        """The (averaged) parameters of the epoch with the lowest validation loss, or of the last without validation."""
        return self._best

    @property
    def energy_fn(self) -> Any:
        """The energy function with :attr:`best_params`."""
        return self._templates.energy(self._best)

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return int(self._state.step)

    def _arrays(self) -> dict[str, np.ndarray]:
        return named_arrays({"state": _host_copy(self._state), "best": self._best})

    def _restore(self, arrays: Mapping[str, np.ndarray], path: Path) -> None:
        restored = tree_of(arrays, {"state": self._state, "best": self._best}, path)
        self._state, self._best = self._parallel.replicated(restored["state"]), restored["best"]

    def save_energy_params(self, path: Path | str) -> None:
        """Write :attr:`best_params` as safetensors."""
        if self._is_main:
            with atomic_file(path) as temporary:
                save_arrays(temporary, self._best)

    def load_energy_params(self, path: Path | str) -> None:
        """Read parameters written by :meth:`save_energy_params` and start a new training from them."""
        self._start_from(load_arrays(Path(path), self._best))

    def _start_from(self, params: Any) -> None:
        opt_state = _host_copy(jax.jit(self._optimizer.init)(_host_copy(params)))
        self._best, opt_state = self._parallel.broadcast((_host_copy(params), opt_state))
        average = None if self._ema is None else self._best
        self._state = self._parallel.replicated(TrainState(self._best, opt_state, average, np.int32(0), np.True_))
        self._record = TrainingRecord()


def _host_copy(tree: Any) -> Any:
    """NumPy copies: a view of a device array would change when a later step reuses its memory."""
    return jax.tree.map(lambda x: np.array(x, copy=True), tree)
