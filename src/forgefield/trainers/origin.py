"""What a training was made from and by, for those who read its results."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forgefield.config import RunConfig
from forgefield.data.store import Store
from forgefield.files import sha256_of
from forgefield.models.potential import Potential
from forgefield.provenance import provenance
from forgefield.trainers.epoch_trainer import EpochTrainer
from forgefield.trainers.fingerprint import inputs


def made_from(stores: Iterable[Store]) -> Iterator[tuple[str, str]]:
    """The user's files that converted data were made from, where they are known."""
    for store in stores:
        if files := [name for name, _ in store.places.files]:
            yield f"data/{store.path.name}", files[0] + (f" and {len(files) - 1} more" if files[1:] else "")


def input_hashes(data: Path, model: Path, statistics: Path, potential: Potential) -> dict[str, str]:
    """The sha256 of what the training reads, and of the user's own files that this was made from, by their names."""
    source = potential.source
    found = {source["name"]: source["sha256"]} if source.keys() >= {"name", "sha256"} else {}
    for path in (data / f"{split}.h5" for split in ("train", "valid", "test")):
        if path.exists():
            with Store(path) as store:
                found |= store.source_hashes
    return found | {name: sha256_of(path) for name, path in inputs(data, model, statistics).items()}


def training_provenance(config: RunConfig, trainer: EpochTrainer, hashes: dict[str, str]) -> dict[str, Any]:
    """By what, from what and in which time a run was trained."""
    rows = trainer.history
    return provenance(config.backend) | {
        "sha256": hashes,
        "trained": {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "epochs": len(rows),
            "best_epoch": trainer.best_epoch,
            "seconds": round(sum(row["seconds"] for row in rows), 3),
            "changed": trainer.remarks,
        },
    }
