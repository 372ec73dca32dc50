"""Optimizer, learning rate, clipping and moving average with the numbers of :mod:`forgefield.trainers.optimizers`."""

import math
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from forgefield.config.training import Schedule, TrainingConfig


def schedule(lr: float, total_steps: int, settings: Schedule) -> Callable[[int], float]:
    """Learning rate by step, counted from 0: a linear rise, then constant and falling to ``final_fraction * lr``."""
    warmup, constant, final = settings.warmup_steps, settings.constant_steps, settings.final_fraction
    decay_steps = max(total_steps - warmup - constant - 1, 1)

    def at(step: int) -> float:
        if step < warmup:
            return lr * (1 + step) / (warmup + 1)
        done = min(max(step - warmup - constant, 0) / decay_steps, 1.0)
        if settings.kind == "cosine":
            return lr * (final + (1 - final) * 0.5 * (1 + math.cos(math.pi * done)))
        return lr * final**done if settings.kind == "exponential" else lr

    return at


def optimizers(
    training: TrainingConfig,
    params: Iterable[torch.nn.Parameter],
    not_by_muon: Iterable[torch.nn.Parameter] = (),
    not_decayed: Iterable[torch.nn.Parameter] = (),
) -> list[torch.optim.Optimizer]:
    """Adam, AdamW, or Muon and AdamW, which share the parameters; the learning rate is set before each step.

    Muon changes matrices, parameters of two dimensions, other than ``not_by_muon``; AdamW changes the rest, of which
    ``not_decayed`` without weight decay. Muon's steps are scaled to the size of AdamW's, so that one learning rate
    serves both.
    """
    params, kept = list(params), {id(p) for p in not_decayed}
    settings = {"lr": training.lr, "weight_decay": training.weight_decay}

    def adamw(own: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        apart = {"params": [p for p in own if id(p) in kept], "weight_decay": 0.0}
        groups = [{"params": [p for p in own if id(p) not in kept]}, apart]
        return torch.optim.AdamW([group for group in groups if group["params"]], **settings)

    if training.optimizer == "adam":
        return [torch.optim.Adam(params, lr=training.lr)]
    if training.optimizer == "adamw":
        return [adamw(params)]
    apart = {id(p) for p in not_by_muon}
    matrices = [p for p in params if p.dim() == 2 and id(p) not in apart]
    chosen = {id(p) for p in matrices}
    others = [p for p in params if id(p) not in chosen]
    made = [torch.optim.Muon(matrices, **settings, adjust_lr_fn="match_rms_adamw")] if matrices else []
    return [*made, adamw(others)] if others else made


def clip_gradients(params: Iterable[torch.nn.Parameter], clip_norm: float | None) -> Tensor:
    """Scale gradients to a global norm of at most ``clip_norm``; returns the norm before.

    PyTorch's own ``clip_grad_norm_`` divides by the norm + 1e-6, which is not the same number.
    """
    gradients = [p.grad for p in params]
    norm = torch.nn.utils.get_total_norm(gradients)
    if clip_norm is not None and norm > clip_norm:
        for gradient in gradients:
            gradient.mul_(clip_norm / norm)
    return norm


@torch.no_grad()
def update_average(average: Mapping[str, Tensor], params: Mapping[str, Tensor], decay: float, step: int) -> None:
    """Exponential moving average after ``step`` steps, counted from 1, in place; its decay starts small."""
    slow = min(decay, (1.0 + step) / (10.0 + step))
    for name, value in average.items():
        value.sub_(value - params[name], alpha=1.0 - slow)
