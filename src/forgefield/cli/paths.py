"""Where each stage's results lie, below the working directory, unless the user says otherwise."""

from pathlib import Path

from forgefield.config import RunConfig

RESULTS = Path("results")


def dataset_directory(dataset: str) -> Path:
    return RESULTS / "datasets" / dataset


def model_directory(model: str) -> Path:
    return RESULTS / "models" / model


def statistics_file(dataset: str, model: str) -> Path:
    return RESULTS / "statistics" / f"{dataset}-{model}.json"


def run_directory(run: RunConfig) -> Path:
    return Path(run.output_path).expanduser() if run.output_path else RESULTS / "runs" / run.name
