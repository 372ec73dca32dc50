"""Training an energy function on reference energies, forces and virials."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import jax
import optax
from jax.sharding import Mesh

from forgefield.data.batching import round_up
from forgefield.data.loaders import BatchLoader, LoadedBatch
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.trainers.arguments import checked_settings, checked_targets, floating_type, global_batch
from forgefield.trainers.checkpoints import KEEP
from forgefield.trainers.datasets import Dataset, make_loader
from forgefield.trainers.jax_trainer import STAGES, JaxTrainer, Stage
from forgefield.trainers.losses import Loss, Predicted
from forgefield.trainers.parallel import Parallelism, choose_parallelism
from forgefield.trainers.prediction import predict
from forgefield.trainers.steps import Template, Templates, predict_step
from forgefield.trainers.templates import batched_template, neighbor_updates


class ForceMatching(JaxTrainer):
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
        gammas: weights of the loss's terms, ``U``, ``F``, ``virial`` and additional targets; by default 1 for U and F.
            The virial term is computed only where its weight is not 0 and the training data have virials.
        weights_keys: by term of the loss, where each structure's weight is: a dataset (N,) at the root of the store, or
            a value in ``extra`` of structures in memory. By default it is ``U_weight``, ``F_weight`` or
            ``virial_weight`` of the store, a field of structures in memory, and for additional targets
            ``NAME_weight``, or 1 without it. 0 leaves a structure out of that term and its metrics.
        additional_targets: further quantities by name, each a template called as ``energy_fn_template`` is (without
            ``strain``), which gives (B, ...) of a packed batch, or (...) of one structure. Their labels are datasets
            (N, ...) at the root of the store or values in ``extra`` under the same names, in units of their own; an
            absent one may be NaN with the weight 0.
        loss, huber_delta: the penalty, see :class:`~forgefield.trainers.losses.Loss`.
        ema: decay of the moving average of parameters, which is then what is validated and returned as best.
        early_stopping: stop after this many epochs without a lower validation loss.
        drop_last: leave out an incomplete last batch of each epoch.
        seed: of the shuffling.
        checkpoint_path: directory for checkpoints, each ``checkpoint_every`` epochs and at the end.
        checkpoint_steps, checkpoint_minutes: optimizer steps and minutes between further ones.
        keep_checkpoints: how many stay.
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
        energy_fn_template: Template,
        nbrs_init: Any,
        *,
        batch: int | None = None,
        eval_batch: int | None = None,
        parallelism: str | Parallelism = "auto",
        mesh: Mesh | None = None,
        gammas: Mapping[str, float] | None = None,
        weights_keys: Mapping[str, str] | None = None,
        additional_targets: Mapping[str, Template] | None = None,
        loss: Literal["mse", "huber"] = "mse",
        huber_delta: float = 0.01,
        ema: float | None = None,
        early_stopping: int | None = None,
        drop_last: bool = False,
        seed: int = 0,
        checkpoint_path: Path | str | None = None,
        checkpoint_every: int = 1,
        checkpoint_steps: int | None = None,
        checkpoint_minutes: float | None = None,
        keep_checkpoints: int = KEEP,
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
        targets = checked_targets(additional_targets, weights_keys)
        settings = checked_settings(
            targets.names,
            gammas={"U": 1.0, "F": 1.0} if gammas is None else dict(gammas),
            batch=batch,
            batch_per_device=batch_per_device,
            eval_batch=eval_batch,
            loss=loss,
            huber_delta=huber_delta,
            ema=ema,
            early_stopping=early_stopping,
            checkpoint_every=checkpoint_every,
            checkpoint_steps=checkpoint_steps,
            checkpoint_minutes=checkpoint_minutes,
            keep_checkpoints=keep_checkpoints,
            check_replicas_every=check_replicas_every,
            seed=seed,
        )
        chosen = isinstance(parallelism, Parallelism)
        parallel = parallelism if chosen else choose_parallelism(parallelism, mesh)
        templates, self._neighbors = Templates(energy_fn_template, dict(additional_targets or {})), nbrs_init
        if hasattr(nbrs_init, "update"):
            if settings.gammas.get("virial", 0.0):
                raise UserError("gammas: virial needs an energy function of packed batches, which takes a strain")
            of_structure, self._neighbors = templates, neighbor_updates(nbrs_init)
            templates = Templates(
                batched_template(of_structure.energy, nbrs_init),
                {name: batched_template(template, nbrs_init) for name, template in of_structure.targets.items()},
            )
        self._dtype = floating_type(init_params)
        self._batch = global_batch(settings.batch, settings.batch_per_device, parallel.parts)
        self._eval_batch = round_up(settings.eval_batch or self._batch, parallel.parts)
        self._drop_last, self._seed = drop_last, settings.seed
        super().__init__(
            init_params,
            optimizer,
            templates=templates,
            loss=Loss(settings.gammas, settings.loss, settings.huber_delta),
            targets=targets,
            parallel=parallel,
            ema=settings.ema,
            penalty_fn=penalty_fn,
            check_replicas_every=settings.check_replicas_every,
            early_stopping=settings.early_stopping,
            checkpoint_path=checkpoint_path,
            checkpoint_every=settings.checkpoint_every,
            checkpoint_steps=settings.checkpoint_steps,
            checkpoint_minutes=settings.checkpoint_minutes,
            keep_checkpoints=settings.keep_checkpoints,
            log_file=log_file,
            fingerprint=fingerprint,
            progress=progress,
        )

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
            loader = self._loader(dataset, self._batch, targets=self.targets, **settings)
        else:
            loader = self._loader(dataset, self._eval_batch, targets=self.targets)
        self.set_loader(loader, stage)

    def predict(self, dataset: Dataset, *, virial: bool = False) -> list[Structure]:
        """The data set's structures with the labels that :attr:`best_params` predict.

        Energies in eV with their shifts, forces in eV/Å, and additional targets in ``extra``.
        """
        loader = self._unlabelled(dataset)
        step = predict_step(self._templates, self._parallel, virial=virial)
        return predict(step, self._parallel.replicated(self._best), loader, self._parallel)

    def predict_batches(self, dataset: Dataset, *, virial: bool = False) -> Iterator[tuple[LoadedBatch, Predicted]]:
        """Batches and their packed predictions, without energy shifts, as they lie on the devices.

        Every array has a leading axis over devices, and its ``addressable_shards`` are those of this process.
        """
        loader, params = self._unlabelled(dataset), self._parallel.replicated(self._best)
        step = predict_step(self._templates, self._parallel, virial=virial)
        for loaded in self._parallel.batches(loader, 0):
            yield loaded, step(params, self._parallel.placed(loaded))

    def _unlabelled(self, dataset: Dataset) -> BatchLoader:
        """Batches for predictions, for which no additional label is asked."""
        loader = self._loader(dataset, self._eval_batch)
        loader.plan(1)
        return loader

    def _loader(self, dataset: Dataset, batch: int, **settings: Any) -> BatchLoader:
        return make_loader(dataset, self._neighbors, batch, self._parallel, dtype=self._dtype, **settings)
