"""What the rules share: the checked configuration, the names in it, the environment of their commands."""

import json
import os
import re
import shlex
import sys
import time
from pathlib import Path

SOURCE = os.path.join(workflow.basedir, "src")
SCRIPTS = os.path.join(workflow.basedir, "scripts")
sys.path.insert(0, SOURCE)

from forgefield.config import load_config, stage_settings
from forgefield.data.sources.files import find_files
from forgefield.files import files_in
from forgefield import launch
from forgefield.errors import UserError, reported_errors
from forgefield.evaluation.metrics_file import shown_split
from forgefield.launch.plugin import adapt_plugin
from forgefield.models.plugin.code import code_files

# A rule's `python` is the one that runs snakemake; a conda environment goes before it.
os.environ.update(
    PATH=os.pathsep.join([os.path.dirname(sys.executable), *os.get_exec_path()])
)
# Snakemake takes PYTHONPATH out of the environment of rules that run in conda, hence the prefix. The user's own is for
# models of architecture python.
PATHS = os.pathsep.join([SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])
# At a signal, shell and tee wait for the command, which may save what it has.
shell.prefix(
    "set -euo pipefail; trap : TERM USR1; export PYTHONUNBUFFERED=1"
    f" PYTHONPATH={shlex.quote(PATHS)} SCRIPTS={shlex.quote(SCRIPTS)}; "
    """tee() {{ (trap '' INT TERM USR1; exec tee "$@"); }}; """
)

adapt_plugin()

with reported_errors():
    CONFIG = load_config(config, folder=os.path.dirname(workflow.configfiles[-1]))
    RUNS = {name: CONFIG.run(name) for name in CONFIG.run_names}
    for name, run in RUNS.items():
        if run.output_path and workflow.is_main_process:
            print(
                f"output_path: {run.output_path} is for `forgefield train`; the workflow puts run {name} into"
                f" results/runs/{name}",
                file=sys.stderr,
            )

# The splits that every run evaluates: output files cannot differ between the runs of one rule.
SPLITS = [
    split
    for split in ("train", "valid", "test")
    if all(split in run.evaluation.splits for run in RUNS.values())
]
PICTURES = ["png", "svg"]
STARTED = time.time()


wildcard_constraints:
    dataset="|".join(map(re.escape, CONFIG.datasets)),
    model="|".join(map(re.escape, CONFIG.models)),
    run="|".join(map(re.escape, RUNS)),


def settings(stage, name):
    """A params function: the part of the configuration that a stage reads, so that only its changes rerun it."""
    return lambda wildcards: json.dumps(
        stage_settings(CONFIG, stage, name.format(**wildcards)), sort_keys=True
    )


def source_files(wildcards):
    """The files that a dataset is converted and split from; its conversion loads those from the internet."""
    dataset = CONFIG.datasets[wildcards.dataset]
    sources = dataset.source or sum(dataset.split.shares.values(), [])
    paths = [source for source in sources if isinstance(source, str)]
    paths += [dataset.split.file] if dataset.split.file else []
    with reported_errors():
        found = find_files(paths) if paths else []
    return [file for path in found for file in files_in(path)]


def foundation_files(wildcards):
    """The file, or the two files of the directory, that a pretrained model is imported from, but for a URL."""
    foundation = CONFIG.models[wildcards.model].foundation
    if foundation is None or foundation.startswith(("http://", "https://")):
        return []
    pair = ("model.json", "weights.safetensors")
    if not os.path.exists(f"{foundation}/model.json"):
        if os.path.exists(f"{foundation}/model_config.yaml"):
            pair = ("model_config.yaml", "model.pt")
    with reported_errors():
        if os.path.isdir(foundation):
            return find_files([f"{foundation}/{name}" for name in pair])
        return find_files(foundation)


def environment_of(wildcards):
    """The name of the conda environment that a run, or else its model, is computed in."""
    run = RUNS.get(getattr(wildcards, "run", None))
    if run is None:
        mace = CONFIG.models[wildcards.model].architecture == "mace"
        return "jax" if mace else "fabric"
    return "mpi" if run.parallelism == "mpi" else run.backend


def code_of(wildcards):
    """The files of a model of architecture python, so that the model is made again when its code changes."""
    # where there are none, the import says so
    return list(
        map(str, code_files(CONFIG.models[wildcards.model].python.object or ""))
    )


def splits_of(wildcards):
    """The stores that a run is evaluated on."""
    run = RUNS[wildcards.run]
    return [
        f"results/datasets/{run.dataset}/{split}.h5" for split in run.evaluation.splits
    ]


def model_of(file):
    """An input function: a file of the imported model of a run."""
    return lambda wildcards: f"results/models/{RUNS[wildcards.run].model}/{file}"


def dataset_of(file):
    """An input function: a file of the converted dataset of a run."""
    return lambda wildcards: f"results/datasets/{RUNS[wildcards.run].dataset}/{file}"


def stores_of(wildcards):
    """All splits of a run's dataset."""
    dataset = RUNS[wildcards.run].dataset
    return [
        f"results/datasets/{dataset}/{split}.h5" for split in ("train", "valid", "test")
    ]


def statistics_of(wildcards):
    run = RUNS[wildcards.run]
    return f"results/statistics/{run.dataset}-{run.model}.json"


def scratch_of(run):
    """The first run that trains a model from scratch on the data of this one, which does not; or None.

    It must be evaluated on the split that is shown.
    """
    if CONFIG.models[RUNS[run].model].foundation is None:
        return None
    split = shown_split(RUNS[run].evaluation.splits)
    return next(
        (
            other
            for other, settings in RUNS.items()
            if settings.dataset == RUNS[run].dataset
            and CONFIG.models[settings.model].foundation is None
            and split in settings.evaluation.splits
        ),
        None,
    )


def evaluated(run):
    """What an evaluation writes of a run."""
    names = ["metrics.json", *(f"predictions_{split}.h5" for split in SPLITS)]
    return [f"results/runs/{run}/{name}" for name in names] if run else []


def scratch_option(run):
    other = scratch_of(run)
    return f"--scratch {shlex.quote(f'results/runs/{other}')}" if other else ""


def plots():
    """The pictures of every run."""
    return expand(
        "results/runs/{run}/parity_{quantity}.{picture}",
        run=RUNS,
        quantity=["energy", "forces"],
        picture=PICTURES,
    )


def reported():
    """What the report shows: of the configured runs, and of others what is there."""
    names = [f"predictions_{split}.h5" for split in SPLITS]
    names += ["metrics.json", "config.yaml", "provenance.json"]
    names += [os.path.basename(file) for file in plots()]
    evaluated = {
        file.parent.name for file in Path("results/runs").glob("*/metrics.json")
    }
    files = expand(
        "results/runs/{run}/{name}",
        run=sorted({*RUNS, *evaluated}),
        name=sorted(set(names)),
    )
    return [
        file for file in files if file.split("/")[2] in RUNS or os.path.exists(file)
    ]


def small_job(key):
    """A resources function of a stage of one process."""
    return lambda wildcards: launch.small_resources(slurm_of(wildcards))[key]


def run_job(key):
    """A resources function of training and evaluation."""
    return lambda wildcards: launch.run_resources(RUNS[wildcards.run]).get(key)


def slurm_of(wildcards):
    return RUNS.get(getattr(wildcards, "run", None), CONFIG).slurm


def processes_of(wildcards, resources):
    """How many processes a run has, if the resources of its job are for them."""
    with reported_errors():
        return launch.require_resources(RUNS[wildcards.run], resources)


# What jobs ask Slurm for; nothing where it is None, and elsewhere of no effect.
SMALL_JOB = {key: small_job(key) for key in launch.SMALL}
RUN_JOB = {key: run_job(key) for key in launch.RUN}


def print_results():
    """At the end, each run's errors before and after training, and its plots."""
    for run in RUNS:
        try:
            if Path(f"results/runs/{run}/metrics.json").exists():
                print_result(run)
        # not all may have been asked for, and what is there may be of before
        except (UserError, OSError, SyntaxError, ValueError) as error:
            print(f"{run}: {error}", file=sys.stderr)


def print_result(run):
    """That of one run, beside the run from scratch where there is one that is evaluated."""
    from forgefield.evaluation.style import origin_of
    from forgefield.evaluation.summary import print_summary
    from forgefield.files import sha256_of

    runs, other = Path("results/runs"), scratch_of(run)
    beside = other and (runs / other / "metrics.json").exists()
    origin = sha256_of(runs / run / "metrics.json")
    parity = sorted((runs / run).glob("parity_*.png"))
    print_summary(
        runs / run,
        scratch=runs / other if beside else None,
        drawn=[path for path in parity if origin_of(path) == origin],
    )


def print_errors():
    """At the end, what forgefield said is wrong, which Snakemake's own account of a failed job hides."""
    for log in Path("results/logs").glob("*/*.log"):
        if log.stat().st_mtime >= STARTED:
            for line in log.read_text(errors="replace").splitlines():
                if line.startswith("error: "):
                    print(f"{log}: {line}", file=sys.stderr)
