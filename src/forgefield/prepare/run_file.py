"""The first run file for some data and a model: what can be found out is written, and only that."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ase.data import chemical_symbols

from forgefield.config.split import Split
from forgefield.config.training import TrainingConfig
from forgefield.data.inspection import (
    Inspection,
    dataset_entry,
    entry_name,
    on_one_line,
    problems,
    suitable_split,
)
from forgefield.errors import UserError
from forgefield.files import sha256_of
from forgefield.models.potential import load_potential

# rules of thumb, for the user to change: a step sees about this many atoms, a training this many steps
STEP_ATOMS, STEPS = 1000, 20_000
EPOCHS = (10, 200)
URLS = ("http://", "https://")
SHAPES = {"energy": "one", "forces": "atoms x 3"}  # as inspection names them
# in the names of keys that can be nothing else, and of those that are no label
NAMES = {"energy": re.compile("energ"), "forces": re.compile("forc|grad")}
NO_LABEL = re.compile("weight|moment|velocit|magmom|free_energy")


@dataclass(frozen=True)
class RunFile:
    """The settings of a run, and what a user should know of them.

    Attributes:
        name: of the dataset.
        settings: the content of the file.
        remarks: one line each.
    """

    name: str
    settings: dict[str, Any]
    remarks: list[str]

    def text(self, file: Path, command: str) -> str:
        """The file's text, with the commands that use it."""
        uses = [f"snakemake --configfile {file}     # in the workflow; results in results/"]
        if "output_path" in self.settings:
            uses = [f"forgefield train {file}", f"forgefield test {file}", *uses]
        head = [
            f"Made by `{command}`. Every key: config/README.md in forgefield's repository",
            *(f"    {use}" for use in uses),
            *self.remarks,
        ]
        return "".join(f"# {line}\n" for line in head) + "".join(_yaml(self.settings))


def _yaml(settings: dict[str, Any], depth: int = 0) -> list[str]:
    """Named entries in lines of their own, everything in them on one line each."""
    lines = []
    for key, value in settings.items():
        if isinstance(value, dict) and (depth or key in ("datasets", "models")) and depth < 2:
            lines += [f"{'  ' * depth}{key}:\n", *_yaml(value, depth + 1)]
        else:
            lines.append(f"{'  ' * depth}{key}: {on_one_line(value)}\n")
    return lines


def initial_run(sources: Sequence[str], found: Inspection, model: str | None) -> RunFile:
    """The run that trains ``model`` on ``sources``.

    Args:
        sources: the paths that the user gave.
        found: what they hold.
        model: a model's directory, file or URL; None trains from scratch.

    Raises:
        UserError: the data cannot be converted as they are, there is no such model, or it lacks an element.
    """
    if wrong := problems(found):
        raise UserError(f"{sources[0]}: {wrong[0]}; `forgefield inspect` shows more")
    unnamed = _unnamed_labels(sources[0], found)
    name = entry_name(Path(sources[0].rstrip("/*")).name.split(".")[0])
    entry = dataset_entry(found, sources)
    method, why = suitable_split(found.order)
    entry["split"] = method | Split().shares | entry.get("split", {})
    label, model_entry, remarks = _model(model, found.sizes["elements"])
    settings = {
        "dataset": name,
        "datasets": {name: entry},
        "model": label,
        "models": {label: model_entry},
        "backend": _backend(model_entry),
        "training": _training(found, entry["split"]["train"]),
    }
    n = found.frames["usable"]
    missing = [x for x in SHAPES if x not in found.labels or found.labels[x]["frames"] < n]
    if missing:
        what = " and no ".join(missing)
        remarks.append(f"Some frames have no {what}: the workflow trains on them, see docs/your_data.md there.")
    else:
        settings["output_path"] = f"runs/{name}"
    return RunFile(name, settings, [*_about(found), f"split: {why} (docs/splits.md there).", *remarks, *unnamed])


def _unnamed_labels(source: str, found: Inspection) -> list[str]:
    """Remarks on keys of a label's shape that may be one that was not found; only a user can tell.

    Raises:
        UserError: a key's name says that it is.
    """
    remarks = []
    used = {key for of_label in found.labels.values() for key in (of_label["key"], *of_label["or"])}
    for label, shape in SHAPES.items():
        floats = [k["key"] for k in found.keys if k["type"].startswith("float") and shape in k["shapes"]]
        like = [key for key in floats if key not in used and not NO_LABEL.search(key.casefold())]
        if label in found.labels or not like:
            continue
        if telling := [key for key in like if NAMES[label].search(key.casefold())]:
            sign = ", with a minus before the key if it is a gradient" if label == "forces" else ""
            raise UserError(
                f"{source}: no {label} found; is it {' or '.join(telling[:3])}? Write a run file by hand that names "
                f"it, such as `keys: {{{label}: {telling[0]}}}`{sign}"
            )
        remarks.append(f"No {label} found. If it is {' or '.join(like[:3])}, name it: `keys: {{{label}: {like[0]}}}`.")
    return remarks


def _about(found: Inspection) -> list[str]:
    sizes = found.sizes
    least, most = sizes["atoms"]
    atoms = f"{least}" if least == most else f"{least} to {most}"
    what = f"{found.frames['usable']} structures of {atoms} atoms ({' '.join(sizes['elements'])})."
    return [what, *(f"units: {line}" for line in found.guess.evidence)]


def _model(model: str | None, elements: list[str]) -> tuple[str, dict[str, Any], list[str]]:
    """The name of the model, its entry, and remarks."""
    if model is None:
        line = "No --model was given: training starts from random parameters, which needs much more data."
        return "scratch", {"elements": elements}, [line]
    if model.startswith(URLS):
        return entry_name(Path(model).stem, "model"), {"foundation": model}, ["The first run tells the model's sha256."]
    path = Path(model).expanduser()
    label = entry_name(path.parent.name if path.name == "model" else path.stem, "model")
    if path.is_file():
        line = f"The sha256 of {path.name} says that you trust it: reading a pickled model can run code in it."
        return label, {"foundation": model, "sha256": sha256_of(path)}, [line]
    if (path / "model_config.yaml").exists():
        return label, {"architecture": "flashcart", "foundation": model}, []
    if not path.exists():
        raise UserError(f"--model {model}: no such file or directory; give a `.model` file, a directory or a URL")
    potential = load_potential(path)
    known = {chemical_symbols[z] for z in potential.elements}
    if unknown := [symbol for symbol in elements if symbol not in known]:
        raise UserError(f"{model}: the model does not know {', '.join(unknown)}, which the data hold; choose another")
    return label, {"architecture": potential.architecture, "foundation": model}, []


def _backend(model: dict[str, Any]) -> str:
    """JAX where it is installed and can train the model."""
    return "jax" if model.get("architecture", "mace") == "mace" and find_spec("jax") else "fabric"


def _training(found: Inspection, share: float) -> dict[str, Any]:
    default = TrainingConfig()
    n_train = max(1, int(share * found.frames["usable"]))
    batch = max(1, min(default.batch, n_train, STEP_ATOMS // found.sizes["atoms"][1]))
    epochs = min(max(STEPS * batch // n_train, EPOCHS[0]), EPOCHS[1])
    return {"batch": batch, "epochs": epochs, "lr": default.lr}
