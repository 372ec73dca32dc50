"""What the report takes from a run's directory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgefield.config.yaml import read_yaml
from forgefield.errors import UserError
from forgefield.evaluation.metrics_file import Metrics, SplitErrors, read_metrics, shown_split
from forgefield.evaluation.style import PICTURES
from forgefield.files import read_json, sha256_of
from forgefield.report.faults import Faults


@dataclass(frozen=True)
class Run:
    """An evaluated run.

    Attributes:
        name: of its directory.
        path: that directory.
        config: its settings.
        metrics: its errors.
        origin: the sha256 of the file of these.
        provenance: how, where and from what it was trained; empty where that is not recorded.
        pictures: its plots.
    """

    name: str
    path: Path
    config: dict[str, Any]
    metrics: Metrics
    origin: str
    provenance: dict[str, Any]
    pictures: list[Path]

    @property
    def splits(self) -> Mapping[str, SplitErrors]:
        return self.metrics.splits

    @property
    def split(self) -> str:
        """The split whose points are shown."""
        return shown_split(self.splits)

    @property
    def variants(self) -> list[str]:
        """The models that were evaluated on it."""
        return [name for name, _ in self.splits[self.split].variants()]

    @property
    def predictions(self) -> Path:
        return self.path / f"predictions_{self.split}.h5"


def read_runs(paths: Sequence[Path], faults: Faults | None = None) -> list[Run]:
    """The runs in some directories, each with ``metrics.json``.

    Args:
        paths: the directories.
        faults: what becomes of a run that is not evaluated or damaged; by default it is an error.

    Raises:
        UserError, OSError: there is none, or one has a fault that is not tolerated.
    """
    names = [path.resolve().name for path in paths]
    faults, runs = faults or Faults(), []
    for path, name in zip(paths, names, strict=True):
        name = name if names.count(name) == 1 else str(path)
        with faults.leaving_out(f"run {name}"):
            runs.append(_read(path, name))
    if not runs:
        if faults.lines:
            raise UserError("every run is left out, see above; evaluate one first, or name the directory of another")
        raise UserError("results/runs holds no evaluated run; name the directory of one, or evaluate one first")
    return runs


def _read(path: Path, name: str) -> Run:
    if not (path / "metrics.json").exists():
        raise UserError(f"{path}: no metrics.json; evaluate the run first with `forgefield evaluate`")
    file, provenance = path / "config.yaml", path / "provenance.json"
    if not isinstance(config := read_yaml(file) if file.exists() else {}, dict):
        raise UserError(f"{file}: holds no keys; train the run again, or remove the file")
    return Run(
        name=name,
        path=path,
        config=config,
        metrics=read_metrics(path),
        origin=sha256_of(path / "metrics.json"),
        provenance=read_json(provenance) if provenance.exists() else {},
        pictures=[picture for name in PICTURES if (picture := path / f"{name}.png").exists()],
    )


def flattened(content: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted keys and their values as text."""
    flat: dict[str, str] = {}
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return flat
