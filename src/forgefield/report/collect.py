"""What the report takes from a run's directory."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgefield.config.yaml import read_yaml
from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.evaluation.metrics_file import SplitErrors, read_splits
from forgefield.files import read_json


@dataclass(frozen=True)
class Run:
    """An evaluated run.

    Attributes:
        name: of its directory.
        path: that directory.
        config: its settings.
        splits: its errors.
        provenance: how, where and from what it was trained; empty where that is not recorded.
        pictures: its plots.
    """

    name: str
    path: Path
    config: dict[str, Any]
    splits: Mapping[str, SplitErrors]
    provenance: dict[str, Any]
    pictures: list[Path]

    @property
    def split(self) -> str:
        """The split whose points are shown: test where there is one."""
        return "test" if "test" in self.splits else next(iter(self.splits))

    @property
    def variants(self) -> list[str]:
        """The models that were evaluated on it."""
        return [name for name, _ in self.splits[self.split].variants()]

    @property
    def predictions(self) -> Path:
        return self.path / f"predictions_{self.split}.h5"

    def sources(self) -> dict[str, str]:
        """The files that the data were converted from, and their sha256, as far as that is known."""
        with self._store() as store:
            attributes = store.attributes if store else {}
        if not attributes.keys() >= {"source", "source_sha256", "source_first_frame"}:
            return {}
        return dict(zip(*(json.loads(attributes[key]) for key in ("source", "source_sha256")), strict=True))

    def _store(self) -> AbstractContextManager[Store | None]:
        """The converted data, of a run file beneath the run, of the workflow beside all runs."""
        own, shared = self.path / "data", self.path.parent.parent / "datasets" / str(self.config.get("dataset"))
        found = [path for path in (own / f"{self.split}.h5", shared / f"{self.split}.h5") if path.exists()]
        return Store(found[0]) if found else nullcontext()


def read_runs(paths: Sequence[Path], *, leave_out: bool = False) -> list[Run]:
    """The runs in some directories.

    Args:
        paths: the directories, each with ``metrics.json`` and predictions.
        leave_out: say of a damaged run that it is left out, instead of ending.

    Raises:
        UserError: there is none, or one has not been evaluated or is damaged.
    """
    names = [path.resolve().name for path in paths]
    runs = []
    for path, name in zip(paths, names, strict=True):
        try:
            runs.append(_read(path, name if names.count(name) == 1 else str(path)))
        except UserError as error:
            if not leave_out:
                raise
            print(f"warning: left out: {error}", file=sys.stderr)
    if not runs:
        raise UserError("results/runs holds no evaluated run; name the directory of one, or evaluate one first")
    return runs


def _read(path: Path, name: str) -> Run:
    if not (path / "metrics.json").exists():
        raise UserError(f"{path}: no metrics.json; evaluate the run first with `forgefield evaluate`")
    config, provenance = path / "config.yaml", path / "provenance.json"
    run = Run(
        name=name,
        path=path,
        config=read_yaml(config) if config.exists() else {},
        splits=read_splits(path),
        provenance=read_json(provenance) if provenance.exists() else {},
        pictures=sorted(path.glob("*.png")),
    )
    if not run.predictions.exists():
        raise UserError(f"{run.predictions}: no such file; evaluate the run again with `forgefield evaluate`")
    return run


def flattened(content: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted keys and their values as text."""
    flat: dict[str, str] = {}
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return flat
