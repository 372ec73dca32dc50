"""The same training as three programs are told of it: ``forgefield train``, ``mace_run_train``, ``flashcart-train``."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ase
import ase.io
import numpy as np
import torch
import yaml
from ase.data import atomic_numbers, chemical_symbols
from systems import bpa

from forgefield.files import sha256_of
from forgefield.models.mace.torch_reference import quiet_mace

SPLITS = ("train", "valid", "test")
START = "start.model"
CUTOFF, LR, EMA = 5.0, 1e-3, 0.99


@dataclass(frozen=True)
class Training:
    """What is trained.

    Attributes:
        structures: by split.
        batch: structures of a step, and of an evaluation at once.
        channels: of the node features, all scalars.
    """

    structures: dict[str, int]
    batch: int
    epochs: int
    precision: str
    channels: int

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-self.structures["train"] // self.batch)


def write_data(training: Training, folder: Path) -> tuple[list[str], str]:
    """Frames with made-up labels, which cost as much as any; returns their elements, and where they come from."""
    system, generator = bpa(), np.random.default_rng(0)
    for split in SPLITS:
        frames = []
        for i in generator.integers(len(system.pool), size=training.structures[split]):
            structure = system.pool[i]
            atoms = ase.Atoms(structure.numbers, structure.positions)
            atoms.info["REF_energy"] = float(generator.normal())
            atoms.arrays["REF_forces"] = generator.normal(size=structure.positions.shape)
            frames.append(atoms)
        ase.io.write(folder / f"{split}.extxyz", frames)
    numbers = sorted({int(z) for structure in system.pool for z in structure.numbers})
    return [chemical_symbols[z] for z in numbers], system.origin


def write_start(training: Training, elements: list[str], folder: Path) -> None:
    """A MACE with random weights, from which both trainings start: made from scratch, the programs' would differ."""
    torch.manual_seed(0)
    numbers = [atomic_numbers[symbol] for symbol in elements]
    with quiet_mace():
        from e3nn import o3
        from mace.modules import ScaleShiftMACE, interaction_classes

        module = ScaleShiftMACE(
            r_max=CUTOFF,
            num_bessel=8,
            num_polynomial_cutoff=5,
            max_ell=3,
            interaction_cls=interaction_classes["RealAgnosticResidualInteractionBlock"],
            interaction_cls_first=interaction_classes["RealAgnosticInteractionBlock"],
            num_interactions=2,
            num_elements=len(numbers),
            hidden_irreps=o3.Irreps(f"{training.channels}x0e"),
            MLP_irreps=o3.Irreps("16x0e"),
            atomic_energies=np.zeros(len(numbers)),
            avg_num_neighbors=16.0,
            atomic_numbers=numbers,
            correlation=3,
            gate=torch.nn.functional.silu,
            atomic_inter_scale=1.0,
            atomic_inter_shift=0.0,
        )
    torch.save(module, folder / START)


def of_forgefield(model: str, training: Training, elements: list[str], folder: Path) -> list[str]:
    """Words after ``forgefield``; its file goes into ``folder``, beside the data."""
    shape: dict[str, Any] = {"foundation": f"../{START}", "sha256": sha256_of(folder.parent / START)}
    if model == "flashcart":
        features = {"n_hidden_feats": training.channels, "l_max_hidden_feats": 1}
        shape = {"architecture": model, "elements": elements, "r_max": CUTOFF, model: features}
    settings = {
        "batch": training.batch,
        "eval_batch": training.batch,
        "batching": "fixed",
        "epochs": training.epochs,
        "precision": training.precision,
        "optimizer": "adamw",
        "lr": LR,
        "schedule": {"kind": "constant"},
        "ema": EMA,
    }
    run = {f"{split}_path": f"../{split}.extxyz" for split in SPLITS}
    run |= {"output_path": "run", "backend": "fabric", "models": {"model": shape}, "training": settings}
    (folder / "run.yaml").write_text(yaml.safe_dump(run))
    return ["train", "run.yaml"]


def of_mace(training: Training, elements: list[str], folder: Path) -> list[str]:
    """Words after ``mace_run_train``."""
    options = {
        "name": "run",
        "train_file": "../train.extxyz",
        "valid_file": "../valid.extxyz",
        "E0s": "average",
        "energy_key": "REF_energy",
        "forces_key": "REF_forces",
        "foundation_model": f"../{START}",
        "multiheads_finetuning": False,
        "batch_size": training.batch,
        "valid_batch_size": training.batch,
        "max_num_epochs": training.epochs,
        "default_dtype": training.precision,
        "optimizer": "adamw",
        "lr": LR,
        "ema_decay": EMA,
        "device": "cpu",
        "plot": False,
    }
    return ["--ema", *(f"--{name}={value}" for name, value in options.items())]


def of_flashcart(training: Training, elements: list[str], folder: Path) -> list[str]:
    """Words after ``flashcart-train``."""
    options = {f"{split}_path": f"../{split}.extxyz" for split in SPLITS} | {
        "elements": elements,
        "output_path": "run",
        "r_max": CUTOFF,
        "n_hidden_feats": training.channels,
        "l_max_hidden_feats": 1,
        "train_batch_size": training.batch,
        "eval_batch_size": training.batch,
        "dynamic_batching": False,
        "max_epochs": training.epochs,
        "warmup_epochs": 0,
        "decay_epochs": 0,
        "optimizer": "adamw",
        "lr": LR,
        "ema_decay": EMA,
        "device": "cpu",
        "devices": 1,
        "precision": {"float32": "32-true", "float64": "64-true"}[training.precision],
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(options))
    return ["run.yaml"]


OTHERS: dict[str, tuple[str, Callable[[Training, list[str], Path], list[str]]]] = {
    "mace": ("mace_run_train", of_mace),
    "flashcart": ("flashcart-train", of_flashcart),
}
"""The program that trains a model, beside forgefield."""
