"""Where each stage's results lie, below the working directory, unless the user says otherwise."""

from pathlib import Path

RESULTS = Path("results")


def dataset_directory(dataset: str) -> Path:
    return RESULTS / "datasets" / dataset


def model_directory(model: str) -> Path:
    return RESULTS / "models" / model


def statistics_file(dataset: str, model: str) -> Path:
    return RESULTS / "statistics" / f"{dataset}-{model}.json"


def run_directory(run: str) -> Path:
    return RESULTS / "runs" / run
