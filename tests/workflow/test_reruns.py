"""A stage is rerun when, and only when, something it depends on changed."""

import numpy as np
import pytest

FROM_TRAINING = {"train", "evaluate", "plot", "report"}


@pytest.mark.parametrize(
    ("change", "rerun"),
    [
        ("training={lr: 0.02}", FROM_TRAINING),
        ("training={epochs: 3}", FROM_TRAINING),
        ("plots={dpi: 60}", {"plot", "report"}),
        ("statistics={outlier_threshold: 5}", {"statistics", *FROM_TRAINING}),
        ("models={tiny: {seed: 1}}", {"import_model", "statistics", *FROM_TRAINING}),
        ("datasets={water: {split: {method: random}}}", {"convert", "statistics", *FROM_TRAINING}),
        ("datasets={hot-water: {split: {method: random}}}", set()),
    ],
)
def test_a_changed_setting_reruns_what_depends_on_it(finished, change, rerun):
    assert finished.jobs("--config", change) == rerun


def test_a_changed_source_file_reruns_all_but_the_import(finished_copy):
    with np.load(finished_copy.path / "water.npz") as file:
        content = dict(file)
    np.savez(finished_copy.path / "water.npz", **content | {"E": content["E"] + 1.0})
    assert finished_copy.jobs() == {"convert", "statistics", *FROM_TRAINING}


def test_another_backend_is_another_run_on_the_same_data_and_model(finished):
    assert finished.jobs("--config", "backend=fabric") == FROM_TRAINING


def test_another_dataset_adds_results_and_keeps_the_old(finished_copy):
    everything = (file for file in finished_copy.results.rglob("*") if file.is_file())
    old = {file: file.stat().st_mtime_ns for file in everything if "report" not in file.name}
    other = ("--config", "dataset=hot-water")
    assert finished_copy.jobs(*other) == {"convert", "statistics", *FROM_TRAINING}
    done = finished_copy.run(*other)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (finished_copy.results / "runs" / "hot-water-tiny-jax" / "parity_energy.png").exists()
    assert {file: file.stat().st_mtime_ns for file in old} == old
    assert finished_copy.jobs() == set()
    assert "<summary>water-tiny-jax</summary>" in (finished_copy.results / "report.html").read_text()
