"""A user's mistake ends with one line that names it."""

import numpy as np

from forgefield.launch.attempts import MISTAKE


def test_an_unknown_key_ends_in_one_line_and_runs_nothing(workspace):
    done = workspace.run("--config", "trainig={lr: 0.1}")
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert "trainig" in errors[0]
    assert "training" in errors[0]
    assert "Traceback" not in done.stdout + done.stderr
    assert not workspace.results.exists()


def test_a_missing_source_file_is_found_before_anything_runs(workspace):
    (workspace.path / "water.npz").rename(workspace.path / "watr.npz")
    done = workspace.run()
    assert done.returncode == 2
    assert "error: water.npz: no such file; did you mean watr.npz?" in done.stderr
    assert not workspace.results.exists()


def test_a_file_from_the_internet_is_loaded_by_the_stage_and_not_by_the_plan(workspace):
    url = "http://127.0.0.1:1/water.npz"  # nothing listens on this port
    source = ("--config", f"datasets={{water: {{source: {{url: '{url}'}}}}}}")
    assert "convert" in workspace.jobs(*source)
    done = workspace.run("results/datasets/water/train.h5", *source)
    assert done.returncode == 1
    assert f"results/logs/convert/water.log: error: {url}: not reached" in done.stderr


def test_a_mistake_that_a_stage_finds_is_the_last_thing_said_about_it(workspace):
    with np.load(workspace.path / "water.npz") as file:
        content = dict(file)
    content["F"][7, 0, 0] = np.nan
    np.savez(workspace.path / "water.npz", **content)

    done = workspace.run("results/datasets/water/train.h5")

    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("results/logs/convert/water.log: error: ")]
    assert len(errors) == 1
    assert "water.npz" in errors[0]
    assert "7" in errors[0]
    assert MISTAKE in done.stderr  # by which no job of Slurm is repeated
    assert done.stderr.index("Error in rule convert") < done.stderr.index(errors[0])
    assert not list(workspace.results.rglob("*.h5"))


def test_results_of_before_that_cannot_be_shown_are_one_line(workspace):
    metrics = workspace.results / "runs/water-tiny-jax/metrics.json"
    metrics.parent.mkdir(parents=True)
    metrics.write_text("{}")  # of an older format
    done = workspace.run("results/datasets/water/train.h5")
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if "metrics.json" in line]
    assert len(lines) == 1
    assert lines[0].startswith("water-tiny-jax: results/runs/water-tiny-jax/metrics.json: format: missing")
    assert "Traceback" not in done.stdout + done.stderr
