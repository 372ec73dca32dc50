"""Training an energy function on reference energies, forces and virials."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import h5py
import jax
import numpy as np
import optax
from jax.sharding import Mesh

from forgefield.data.batching import round_up
from forgefield.data.given import given_structures, refuse
from forgefield.data.hdf5_loader import HDF5ParallelDataLoader
from forgefield.data.loaders import BatchLoader, LoadedBatch
from forgefield.data.reader import Source, StructureList
from forgefield.data.store import Store
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.files import atomic_file
from forgefield.trainers import epochs as loops
from forgefield.trainers.arguments import checked_settings, floating_type, global_batch
from forgefield.trainers.epoch_trainer import EpochTrainer, NotFiniteError
from forgefield.trainers.history import TrainingRecord
from forgefield.trainers.losses import Loss, Predicted
from forgefield.trainers.optimizers import current_lr
from forgefield.trainers.parallel import Parallelism, choose_parallelism
from forgefield.trainers.replicas import check_replicas
from forgefield.trainers.steps import EnergyTemplate, TrainState, evaluate_step, predict_step, train_step
from forgefield.trainers.templates import batched_template, neighbor_updates
from forgefield.trainers.trees import load_arrays, named_arrays, save_arrays, tree_of

Stage = Literal["training", "validation", "testing"]
STAGES = ("training", "validation", "testing")
Dataset = Source | Sequence[Structure] | Path | str | h5py.File


class ForceMatching(EpochTrainer):
    """Fit the parameters of an energy function to reference data; the loss is in :mod:`forgefield.trainers.losses`.

    Args:
        init_params: a pytree of arrays of one floating-point type, in which the training computes.
        optimizer: any optax optimizer; :func:`forgefield.trainers.optimizers.optimizer` also reports its learning rate.
        energy_fn_template: ``energy_fn_template(params)(graph, strain=None)`` gives energies (B,) in eV, without energy
            shifts, of a :class:`~forgefield.data.batching.Graph`; ``strain`` (B, 3, 3) deforms each structure. With a
            ``nbrs_init`` of jax_md it is ``energy_fn_template(params)(R, neighbor, **sample)``, the energy of one
            structure; see :func:`~forgefield.trainers.templates.samples_of` for R and ``sample``.
        nbrs_init: how neighbor lists are made: :class:`~forgefield.data.packing.PackedNeighbors`, or an allocated list
            with ``update(R, **sample)`` and ``did_buffer_overflow``, as jax_md's.
        batch: structures per optimizer step, over all devices.
        eval_batch: structures per step of evaluation, rounded up to a multiple of the devices; ``batch`` by default.
        parallelism: ``single``: one process, one device; ``mpi``: several MPI ranks with one device each; ``jax``: all
            devices of the process, or of all processes after ``jax.distributed.initialize``; ``auto``: whichever of
            several JAX processes, several MPI ranks, several local devices is found first, else ``single``; or what
            :func:`~forgefield.trainers.parallel.choose_parallelism` returned.
        mesh: a one-dimensional mesh named ``data``, for some of the devices, with ``jax``.
        gammas: weights of the loss's terms, ``U``, ``F`` and ``virial``; by default 1 for U and F. The virial term is
            computed only where its weight is not 0 and the training data have virials.
        loss, huber_delta: the penalty, see :class:`~forgefield.trainers.losses.Loss`.
        ema: decay of the moving average of parameters, which is then what is validated and returned as best.
        early_stopping: stop after this many epochs without a lower validation loss.
        drop_last: leave out an incomplete last batch of each epoch.
        seed: of the shuffling.
        checkpoint_path: directory for checkpoints, each ``checkpoint_every`` epochs and at the end.
        log_file: CSV file of the history.
        fingerprint: JSON content that must be unchanged when a training is continued.
        progress: show progress on stderr.
        penalty_fn: ``penalty_fn(params)`` is added to the loss of every training step.
        check_replicas_every: compare parameters and optimizer state of all devices each so many steps; one that differs
            stops the training.
        batch_per_device: deprecated; ``batch`` divided by the number of devices.
        disable_shmap: refused; choose ``parallelism`` instead.

    Raises:
        UserError: arguments that do not go together; named in the message.
    """

    def __init__(
        self,
        init_params: Any,
        optimizer: optax.GradientTransformation,
        energy_fn_template: EnergyTemplate,
        nbrs_init: Any,
        *,
        batch: int | None = None,
        eval_batch: int | None = None,
        parallelism: str | Parallelism = "auto",
        mesh: Mesh | None = None,
        gammas: Mapping[str, float] | None = None,
        loss: Literal["mse", "huber"] = "mse",
        huber_delta: float = 0.01,
        ema: float | None = None,
        early_stopping: int | None = None,
        drop_last: bool = False,
        seed: int = 0,
        checkpoint_path: Path | str | None = None,
        checkpoint_every: int = 1,
        log_file: Path | str | None = None,
        fingerprint: Mapping[str, Any] | None = None,
        progress: bool = True,
        penalty_fn: Callable[[Any], jax.Array] | None = None,
        check_replicas_every: int | None = None,
        batch_per_device: int | None = None,
        disable_shmap: bool = False,
    ) -> None:
        if disable_shmap:
            raise UserError("disable_shmap: it is not available; choose parallelism='jax', or 'single' for one device")
        given: Mapping[str, float] = {"U": 1.0, "F": 1.0} if gammas is None else gammas
        settings = checked_settings(
            gammas=dict(given),
            batch=batch,
            batch_per_device=batch_per_device,
            eval_batch=eval_batch,
            loss=loss,
            huber_delta=huber_delta,
            ema=ema,
            early_stopping=early_stopping,
            checkpoint_every=checkpoint_every,
            check_replicas_every=check_replicas_every,
            seed=seed,
        )
        chosen = isinstance(parallelism, Parallelism)
        self._parallel = parallelism if chosen else choose_parallelism(parallelism, mesh)
        super().__init__(
            early_stopping=settings.early_stopping,
            checkpoint_path=checkpoint_path,
            checkpoint_every=settings.checkpoint_every,
            log_file=log_file,
            fingerprint=fingerprint,
            progress=progress,
            processes=self._parallel,
        )
        self._dtype = floating_type(init_params)
        self._optimizer, self._template, self._neighbors = optimizer, energy_fn_template, nbrs_init
        if hasattr(nbrs_init, "update"):
            if settings.gammas.get("virial", 0.0):
                raise UserError("gammas: virial needs an energy function of packed batches, which takes a strain")
            self._template, self._neighbors = (
                batched_template(energy_fn_template, nbrs_init),
                neighbor_updates(nbrs_init),
            )
        self._batch = global_batch(settings.batch, settings.batch_per_device, self._parallel.parts)
        self._eval_batch = round_up(settings.eval_batch or self._batch, self._parallel.parts)
        self._loss = Loss(settings.gammas, settings.loss, settings.huber_delta)
        self._ema, self._drop_last, self._seed = settings.ema, drop_last, settings.seed
        self._penalty, self._check_every = penalty_fn, settings.check_replicas_every
        self._start_from(init_params)

    # -- data ----------------------------------------------------------------------------------------------------

    def set_datasets(
        self, training: Dataset, validation: Dataset | None = None, testing: Dataset | None = None
    ) -> None:
        """Give the data of each stage: the path of a store, an open one, or structures in eV and Å in a list."""
        for stage, dataset in zip(STAGES, (training, validation, testing), strict=True):
            if dataset is not None:
                self.set_dataset(dataset, stage)

    def set_dataset(self, dataset: Dataset, stage: Stage = "training") -> None:
        """Give the data of one stage; only those of ``training`` are shuffled."""
        if stage == "training":
            settings = {"seed": self._seed, "drop_last": self._drop_last}
            self.set_loader(self._loader(dataset, self._batch, **settings), stage)
        else:
            self.set_loader(self._loader(dataset, self._eval_batch), stage)

    def set_loader(self, loader: BatchLoader, stage: Stage = "training") -> None:
        """Give the batches of one stage."""
        if stage not in STAGES:
            raise UserError(f"stage: {stage!r} is none of {', '.join(STAGES)}")
        own = self._parallel
        if (loader.parts, loader.local_parts) != (own.parts, own.local_parts):
            raise UserError(f"loader: it makes {loader.parts} parts for {own.parts} devices; they must be equal")
        self._loaders[stage] = loader
        # whether virials are computed depends on the data
        for compiled in ("_train_step", "_evaluate_step"):
            self.__dict__.pop(compiled, None)

    # -- training ------------------------------------------------------------------------------------------------

    def _train_epoch(self, epoch: int, on_step: Callable[[float], None]) -> tuple[float, float]:
        loader = self._loaders["training"]
        try:
            self._state, loss, waited = loops.train_epoch(
                self._train_step, self._state, loader, epoch, self._parallel, on_step, self._check
            )
        except NotFiniteError as error:
            self._state = error.state
            raise
        return loss, waited

    def _check(self, state: TrainState) -> None:
        if self._check_every and int(state.step) % self._check_every == 0:
            check_replicas(state, self._parallel)

    def _validate(self) -> dict[str, float]:
        return self._metrics("validation", self._validated)

    def _lr(self) -> float | None:
        return current_lr(self._state.opt_state)

    def _keep_best(self) -> None:
        self._best = _host_copy(self._validated)

    @cached_property
    def _train_step(self) -> Any:
        settings = {"ema": self._ema, "virial": self._virial, "penalty": self._penalty}
        return train_step(self._template, self._optimizer, self._loss, self._parallel, **settings)

    @cached_property
    def _evaluate_step(self) -> Any:
        return evaluate_step(self._template, self._loss, self._parallel, virial=self._virial)

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

    # -- evaluation and prediction -------------------------------------------------------------------------------

    def evaluate(self, stage: Stage = "testing") -> dict[str, float]:
        """Metrics of :attr:`best_params` on the data of a stage, each structure counted once.

        Returns:
            See :func:`forgefield.trainers.metrics.metrics`.

        Raises:
            UserError: no such data, or the loss is not finite, which names the frames of its batch.
        """
        if stage not in self._loaders:
            raise UserError(f"no {stage} data; call set_dataset(dataset, {stage!r}) first")
        try:
            return self._metrics(stage, self._parallel.replicated(self._best))
        except NotFiniteError as error:
            raise UserError(f"{stage} data, {error}; check the labels of these frames") from None

    def _metrics(self, stage: str, params: Any) -> dict[str, float]:
        loader = self._loaders[stage]
        if not loader.capacities:
            loader.plan(1)
        return loops.evaluate(self._evaluate_step, params, loader, self._parallel)

    def predict(self, dataset: Dataset, *, virial: bool = False) -> list[Structure]:
        """The data set's structures with the labels that :attr:`best_params` predict: eV (shifts included), eV/Å."""
        loader = self._loader(dataset, self._eval_batch)
        loader.plan(1)
        step = predict_step(self._template, self._parallel, virial=virial)
        return loops.predict(step, self._parallel.replicated(self._best), loader, self._parallel)

    def predict_batches(self, dataset: Dataset, *, virial: bool = False) -> Iterator[tuple[LoadedBatch, Predicted]]:
        """Batches and their packed predictions, without energy shifts, as they lie on the devices.

        Every array has a leading axis over devices, and its ``addressable_shards`` are those of this process.
        """
        loader = self._loader(dataset, self._eval_batch)
        loader.plan(1)
        step, params = (
            predict_step(self._template, self._parallel, virial=virial),
            self._parallel.replicated(self._best),
        )
        for loaded in self._parallel.batches(loader, 0):
            yield loaded, step(params, self._parallel.placed(loaded))

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
        return self._template(self._best)

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return int(self._state.step)

    def _arrays(self) -> dict[str, np.ndarray]:
        return named_arrays({"state": self._state, "best": self._best})

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

    def _loader(self, dataset: Dataset, batch: int, **settings: Any) -> BatchLoader:
        own = self._parallel
        settings |= {"parts": own.parts, "local_parts": own.local_parts, "processes": own, "dtype": self._dtype}
        if isinstance(dataset, Path | str):
            return HDF5ParallelDataLoader(dataset, self._neighbors, batch, **settings)
        if isinstance(dataset, h5py.File):
            if own.count > 1:
                raise UserError(
                    f"dataset: {own.count} processes cannot share an open HDF5 file; give its path, which each opens"
                )
            dataset = Store(dataset)
        if isinstance(dataset, Sequence):
            dataset = StructureList(given_structures(dataset))
        if not hasattr(dataset, "read"):
            raise refuse(dataset)
        return BatchLoader(dataset, self._neighbors, batch, **settings)


def _host_copy(tree: Any) -> Any:
    """NumPy copies: a view of a device array would change when a later step reuses its memory."""
    return jax.tree.map(lambda x: np.array(x, copy=True), tree)
