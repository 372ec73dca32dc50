"""What each stage of the workflow depends on, so that a change reruns only the stages it concerns."""

from collections.abc import Mapping
from typing import Any

from forgefield.config.messages import did_you_mean
from forgefield.config.run import Config
from forgefield.errors import UserError

STAGES = ("convert", "import", "statistics", "train", "evaluate", "plot")

PROCESSES: dict[str, Any] = {
    "backend": True,
    "parallelism": True,
    "devices": True,
    "n_nodes": True,
    "slurm": {"launcher"},
}
"""Keys of a run that say which processes do its work."""

RUN_STAGES: dict[str, dict[str, Any]] = {
    "train": PROCESSES | {"training": True},
    # the global batch only because it must fit the devices
    "evaluate": PROCESSES | {"training": {"batch", "eval_batch", "kernels"}, "evaluation": True},
    "plot": {"plots": True},
}
"""Keys of a run that a stage reads itself; what an earlier stage reads reaches it through that stage's files."""


def stage_settings(config: Config, stage: str, name: str) -> dict[str, Any]:
    """The part of the configuration that one stage depends on, as plain JSON content with all defaults filled in.

    The result is itself a valid source of :func:`forgefield.config.load_config`, in which the run has the same name.
    The entries of the run's dataset and model are part of it: a change of them reruns the stage in any case, through
    the files it reads.

    Args:
        config: the whole configuration.
        stage: ``convert``, ``import``, ``statistics``, ``train``, ``evaluate`` or ``plot``.
        name: of the dataset (convert), the model (import), ``{dataset}-{model}`` (statistics) or the run (others).

    Raises:
        UserError: there is no such stage, dataset, model, pair or run.
    """
    if stage == "convert":
        return {"datasets": _entry(config.datasets, name, "datasets")}
    if stage == "import":
        return {"models": _entry(config.models, name, "models")}
    if stage == "statistics":
        dataset, model = _pair(config, name)
        return _entries(config, dataset, model) | {
            "dataset": dataset,
            "model": model,
            "statistics": config.statistics.model_dump(mode="json"),
        }
    if stage not in RUN_STAGES:
        raise UserError(f"no stage is named {stage!r}{did_you_mean(stage, STAGES)}")
    run = config.run(name)
    keys = run.model_dump(mode="json", include={"dataset": True, "model": True} | RUN_STAGES[stage])
    return _entries(config, run.dataset, run.model) | {"runs": {name: keys}}


def _pair(config: Config, name: str) -> tuple[str, str]:
    runs = [config.run(run) for run in config.run_names]
    pairs = {f"{run.dataset}-{run.model}": (run.dataset, run.model) for run in runs}
    if name not in pairs:
        raise UserError(f"no run has the dataset and model {name!r}{did_you_mean(name, pairs)}")
    return pairs[name]


def _entries(config: Config, dataset: str, model: str) -> dict[str, Any]:
    entries = {
        "datasets": _entry(config.datasets, dataset, "datasets"),
        "models": _entry(config.models, model, "models"),
    }
    # the default backend would be refused, and models of these architectures have no other
    return entries | ({} if config.models[model].architecture == "mace" else {"backend": "fabric"})


def _entry(entries: Mapping[str, Any], name: str, kind: str) -> dict[str, Any]:
    if name not in entries:
        raise UserError(f"{kind} has no entry {name!r}{did_you_mean(name, entries)}")
    return {name: entries[name].model_dump(mode="json")}
