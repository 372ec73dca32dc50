"""`snakemake` from the configuration to the plots."""

import json
import re

PICTURES = ("parity_energy", "parity_forces", "error_by_element", "error_by_force", "learning_curve", "data_overview")
STAGES = {"convert", "import", "statistics", "train", "evaluate", "plot", "report"}


def test_one_command_ends_in_parity_plots_and_a_table(finished):
    run = finished.results / "runs" / "water-tiny-jax"
    for name in PICTURES:
        assert (run / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (run / f"{name}.svg").read_text()
    errors = json.loads((run / "metrics.json").read_text())["splits"]["test"]["trained"]
    assert errors["forces"]["n"] == 4 * 3 * 3
    output = (finished.path / "stdout").read_text()
    assert "Errors of water-tiny-jax" in output
    assert "Parity plot: results/runs/water-tiny-jax/parity_energy.png" in output


def test_every_stage_leaves_a_log_and_a_benchmark(finished):
    for kind, suffix in (("logs", ".log"), ("benchmarks", ".tsv")):
        files = [file for file in (finished.results / kind).rglob("*") if file.is_file()]
        assert {file.parent.name for file in files} == STAGES
        assert {file.suffix for file in files} == {suffix}


def test_training_can_be_followed_in_its_log(finished):
    lines = (finished.results / "logs" / "train" / "water-tiny-jax.log").read_text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("epoch")] == ["1/2", "2/2"]


def test_a_second_call_runs_nothing(finished_copy):
    before = {file: file.stat().st_mtime_ns for file in finished_copy.results.rglob("*")}
    done = finished_copy.run()
    assert done.returncode == 0, done.stderr
    assert "Nothing to be done" in done.stdout + done.stderr
    assert {file: file.stat().st_mtime_ns for file in finished_copy.results.rglob("*")} == before


def test_the_report_is_made_for_all_runs(finished):
    text = (finished.results / "report.html").read_text()
    assert "<summary>water-tiny-jax</summary>" in text


def test_snakemakes_report_stands_on_its_own(finished_copy):
    done = finished_copy.run("--report", "workflow.html")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (finished_copy.path / "workflow.html").read_text()
    for word in ("Comparison of runs", "Settings and provenance", "provenance.json", "Parity", "by split, model and"):
        assert word in text
    assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=[\"']?https?:", text)


def test_a_run_from_scratch_is_drawn_beside_a_fine_tuned_one(finished):
    first = "first: {evaluation: {splits: [valid]}}"  # not on what is shown of the other
    runs, models = f"{{{first}, scratch: {{}}, tuned: {{model: other}}}}", "{other: {foundation: results/models/tiny}}"
    done = finished.run("--dry-run", "--printshellcmds", "--config", f"runs={runs}", f"models={models}")
    assert done.returncode == 0, done.stdout + done.stderr
    beside = {
        re.search(r"--run (\w+)", line)[1]: re.findall(r"--scratch (\S+)", line)
        for line in done.stdout.splitlines()
        if "plot.py" in line
    }
    assert beside == {"first": [], "scratch": [], "tuned": ["results/runs/scratch"]}


def test_a_run_file_runs_in_the_workflow_too(finished):
    done = finished.run("--dry-run", "--config", "output_path=runs/water")
    assert "the workflow puts run water-tiny-jax into results/runs/water-tiny-jax" in done.stderr
    assert "Nothing to be done" in done.stdout + done.stderr
