"""Force matching in PyTorch: the counterpart of :class:`forgefield.trainers.ForceMatching`."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from forgefield.config.training import TrainingConfig
from forgefield.data.plans import Sizes
from forgefield.data.prefetch import Prefetch, Timed
from forgefield.data.reader import Source
from forgefield.data.step_plans import StepPlan
from forgefield.models.potential import Potential
from forgefield.models.pytorch.interface import torch_model
from forgefield.trainers.engine import NotFiniteError, StepDone
from forgefield.trainers.epoch_trainer import EpochTrainer
from forgefield.trainers.fabric.batches import evaluation_plan, training_plan
from forgefield.trainers.fabric.evaluation import evaluate
from forgefield.trainers.fabric.graphs import DirectedNeighbors, TorchBatch, micro_batches
from forgefield.trainers.fabric.loader import StepLoader
from forgefield.trainers.fabric.losses import error_sums, per_structure
from forgefield.trainers.fabric.optimizers import clip_gradients, optimizers, schedule, update_average
from forgefield.trainers.fabric.processes import FabricProcesses
from forgefield.trainers.fabric.state import TrainState, host_copies, section_of

BEST, BEST_BUFFERS = "best", "best_buffers"


class FabricTrainer(EpochTrainer):
    """Fit a potential's parameters to reference data.

    Args:
        potential: where training starts; that of process 0 counts.
        training: batches, loss, optimizer and all other settings.
        processes: that share every batch, each with one device.
        checkpoint_path, log_file, fingerprint, progress: see :class:`~forgefield.trainers.epoch_trainer.EpochTrainer`.
    """

    _processes: FabricProcesses

    def __init__(
        self,
        potential: Potential,
        training: TrainingConfig,
        processes: FabricProcesses,
        *,
        checkpoint_path: Path | str | None = None,
        log_file: Path | str | None = None,
        fingerprint: Mapping[str, Any] | None = None,
        progress: bool = True,
    ) -> None:
        super().__init__(
            early_stopping=training.early_stopping,
            checkpoint_path=checkpoint_path,
            checkpoint_every=training.checkpoint_every,
            checkpoint_steps=training.checkpoint_steps,
            checkpoint_minutes=training.checkpoint_minutes,
            keep_checkpoints=training.keep_checkpoints,
            log_file=log_file,
            fingerprint=fingerprint,
            progress=progress,
            processes=processes,
        )
        self._training = training
        self._neighbors = DirectedNeighbors(potential.cutoff, potential.elements, potential.energy_shifts)
        self._fabric = processes.fabric
        model = torch_model(potential, getattr(torch, training.dtype))
        params = model.potential_parameters()
        model.requires_grad_(False)
        for parameter in params.values():
            parameter.requires_grad_(True)
        # a model may say, as FlashCart's do, which of its matrices are no linear maps, and what must not decay
        not_by_muon = getattr(model, "non_muon_parameters", tuple)()
        not_decayed = getattr(model, "non_decayable_parameters", tuple)()
        own_optimizers = optimizers(training, params.values(), not_by_muon, not_decayed)
        self._model, *self._optimizers = self._fabric.setup(model, *own_optimizers)
        average = None if training.ema is None else {k: p.detach().clone() for k, p in params.items()}
        # a user's own code may change some, as BatchNorm does
        buffers = getattr(model, "changing_buffers", dict)
        self._state = TrainState(params, own_optimizers, average, buffers)
        self._keep_best()
        if processes.count > 1:
            self._restore(processes.broadcast(self._arrays()), Path("process 0"))

    def set_datasets(self, training: Source, validation: Source | None = None) -> None:
        """Give the data: structures in eV and Å, as of an open store."""
        settings, count = self._training, self._processes.count
        self._loaders["training"] = self._loader(training, training_plan(settings, count))
        if validation is not None:
            self._loaders["validation"] = self._loader(validation, evaluation_plan(settings, count))
        steps = len(self._loaders["training"]) * settings.epochs
        self._schedule = schedule(settings.lr, steps, settings.schedule)

    @property
    def step(self) -> int:
        """Optimizer steps done."""
        return self._state.step

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The parameters as the last step left them, by the potential's names."""
        return host_copies(self._state.params)

    @property
    def best_params(self) -> dict[str, np.ndarray]:
        """The (averaged) parameters of the epoch with the lowest validation loss, or of the last without validation."""
        return self._best

    @property
    def best_buffers(self) -> dict[str, np.ndarray]:
        """What the model's own code has changed, after that epoch."""
        return self._best_buffers

    # -- epochs --------------------------------------------------------------------------------------------------

    def _steps(self, epoch: int, start: int, pause: Callable[[int], bool]) -> Iterator[StepDone]:
        self._model.train()
        loader = self._loaders["training"]
        # init_tensor: the type to which Fabric converts what a model returns
        with Prefetch(loader.epoch(epoch, start)) as batches, self._fabric.init_tensor():
            timed = Timed(batches)
            for number, loaded in enumerate(timed, start + 1):
                loss, norm, stop = self._gradients(loaded.parts)
                if not (math.isfinite(loss) and math.isfinite(norm)):
                    raise NotFiniteError(f"step {number}", loader.frames(loaded.rows))
                self._update()
                yield StepDone(loss, timed.take(), stop, settled=True)
                if stop:
                    break

    def _gradients(self, parts: Sequence[TorchBatch]) -> tuple[float, float, bool]:
        """Leave the gradients of a batch of all processes, of which this one computes ``parts``, if any.

        Returns:
            Its loss, the norm of the gradients before clipping, and whether a process asks to end the training.
        """
        training, params = self._training, self._state.params.values()
        self._seed()
        for parameter in params:
            parameter.grad = None
        loss, stop = next(iter(params)).new_zeros(2)
        stop += self._stop.asked
        for part in (micro for own in parts for micro in micro_batches(own, training.micro_batches)):
            # the sum over all parts is the mean over a batch as planned, in which every structure weighs the same
            of_part = self._losses(self._fabric.to_device(part)).sum() / self._loaders["training"].batch
            # not by the positions, of which mace-torch keeps the gradient too
            self._fabric.backward(of_part, inputs=list(params))
            loss = loss + of_part.detach()
        for parameter in params:
            # without edges some parameters have no part in the loss; the optimizer's moments still decay
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self._processes.add_up([loss, stop, *(p.grad for p in params)])
        self._processes.take_over(self._state.buffers().values())
        norm = clip_gradients(params, training.clip_norm)
        return float(loss), float(norm), bool(stop)

    def _seed(self) -> None:
        """Let random numbers, as of dropout, follow from the step and the process, so that none need be saved."""
        words = self._training.seed, self._state.step, self._processes.index
        seed = int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])
        torch.default_generator.manual_seed(seed)  # in a microsecond, where torch.manual_seed takes a hundred
        if self._fabric.device.type == "cuda":
            torch.cuda.manual_seed(seed)

    def _update(self) -> None:
        """One optimizer step with these gradients."""
        state = self._state
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self._schedule(state.step)
            optimizer.step()
        state.step += 1
        if state.average is not None:
            update_average(state.average, state.params, self._training.ema, state.step)

    def _losses(self, batch: TorchBatch) -> Tensor:
        predicted = self._model(batch.graph, self._virial)
        return per_structure(self._training.loss, predicted, *batch)

    def _validate(self) -> dict[str, float]:
        self._model.eval()
        self._seed()
        with self._fabric.init_tensor(), self._state.averaged():
            return evaluate(self._error_sums, self._loaders["validation"], self._processes, self._stop)

    def _error_sums(self, batch: TorchBatch) -> dict[str, float]:
        batch = self._fabric.to_device(batch)
        return error_sums(self._training.loss, self._model(batch.graph, self._virial), *batch)

    @property
    def _virial(self) -> bool:
        """Whether the virial term is computed."""
        return self._training.loss.virial > 0 and any(x.source.has_virial for x in self._loaders.values())

    def _lr(self) -> float:
        return self._schedule(self._state.step - 1)

    # -- parameters and files ------------------------------------------------------------------------------------

    def _keep_best(self) -> None:
        self._best, self._best_buffers = self._state.validated(), host_copies(self._state.buffers())

    def _arrays(self) -> dict[str, np.ndarray]:
        best = {BEST: self._best, BEST_BUFFERS: self._best_buffers}
        return self._state.arrays() | {f"{k}/{name}": value for k, own in best.items() for name, value in own.items()}

    def _restore(self, arrays: Mapping[str, np.ndarray], path: Path) -> None:
        self._state.restore(arrays, path)
        self._best, self._best_buffers = section_of(arrays, BEST), section_of(arrays, BEST_BUFFERS)

    def _loader(self, source: Source, plan: Callable[[Sizes], StepPlan]) -> StepLoader:
        return StepLoader(source, self._neighbors, plan, self._processes, dtype=np.dtype(self._training.dtype))
