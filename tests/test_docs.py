"""What README.md and docs/ tell a reader to type is run: long trainings as a dry run, everything else for real.

`make` targets are what `.ci/run` calls.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import ase
import ase.build
import ase.io
import numpy as np
import pytest
import yaml

from forgefield.config import load_config

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IN_ORDER = [line for line in (ROOT / "docs/quick_start.md").read_text().splitlines() if line.startswith("forgefield ")]
TRAINED = "results/runs/glycolaldehyde-hcno-gfn2-jax/model"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def commands(program: str) -> list[str]:
    lines = [
        line.split("#")[0].strip() for page in PAGES for block in blocks(page, "bash") for line in block.split("\n")
    ]
    found = dict.fromkeys(line for line in lines if line.split(" ")[0] == program)
    return [line for line in found if line not in IN_ORDER]


# that of the quick start is run with its commands
WITH_PYTHON = [page for page in PAGES if blocks(page, "python") and page.stem != "quick_start"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A reader's folder: the repository's configuration and resources, a dataset and a public model of her own."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "config", folder / "config")
    for name in ("resources", "slurm"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "config/datasets").mkdir(exist_ok=True)
    (folder / "config/datasets/ethanol.yaml").write_text(blocks(ROOT / "README.md", "yaml")[0])
    (folder / "ethanol.yaml").write_text(blocks(ROOT / "docs/foundation_models.md", "yaml")[0])
    (folder / "reference").mkdir()
    for file in ("ethanol.npz", "reference/md17_ethanol_2000.npz", "reference/mace_spice2022.model"):
        (folder / file).write_bytes(b"a dry run does not read it")
    ase.io.write(folder / "molecules.xyz", [ase.build.molecule("CH3CH2OH"), ase.build.molecule("CH3CHO")])
    shutil.copytree(ROOT / "resources/foundation/hcno-gfn2", folder / TRAINED)
    (folder / "my_run.yaml").write_text(blocks(ROOT / "docs/run_files.md", "yaml")[0])
    for part, n in {"train": 10, "valid": 3, "test": 3}.items():
        ase.io.write(folder / f"{part}.extxyz", [labelled(seed) for seed in range(n)])
    run(folder, *forgefield(IN_ORDER[0]))
    return folder


def labelled(seed: int) -> ase.Atoms:
    atoms, rng = ase.build.molecule("CH3CH2OH"), np.random.default_rng(seed)
    atoms.rattle(0.05, rng=rng)
    atoms.info["REF_energy"], atoms.arrays["REF_forces"] = -4200.0 + rng.normal(), rng.normal(size=(9, 3))
    return atoms


def forgefield(command: str) -> list[str]:
    return [str(Path(sys.executable).with_name("forgefield")), *shlex.split(command)[1:]]


def run(folder: Path, *words: str) -> str:
    return subprocess.run(words, cwd=folder, check=True, text=True, stdout=-1, stderr=subprocess.STDOUT).stdout


def test_every_command_is_of_a_kind_that_is_run():
    lines = [line.strip() for page in PAGES for block in blocks(page, "bash") for line in block.splitlines()]
    programs = {line.split(" ")[0] for line in lines if line and not line.startswith("#")}
    assert programs <= {"make", "source", "snakemake", "forgefield"}


@pytest.mark.parametrize("command", commands("make"))
def test_make_targets_are_run_by_ci(command):
    assert command in (ROOT / ".ci/run").read_text()


@pytest.mark.parametrize("command", commands("snakemake"))
def test_workflow_commands_plan_every_stage(folder, command):
    words = shlex.split(command)[1:]
    out = run(folder, sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--dry-run", *words)
    for stage in ("convert", "import_model", "statistics", "train", "evaluate", "plot", "report"):
        assert re.search(rf"^{stage} +1$", out, re.MULTILINE), out


@pytest.mark.parametrize("command", commands("forgefield"))
def test_other_commands_run(folder, command):
    if " test " in command:
        # what is tested must be trained, also where another process runs that command's own test
        training = next(c for c in commands("forgefield") if c.startswith("forgefield train my_run.yaml"))
        run(folder, *forgefield(training))
    if " validate " in command:
        run(folder, *forgefield("forgefield convert"))
    run(folder, *forgefield(command))
    if " test " in command:
        assert (folder / "runs/my_run/metrics.json").exists()
    if " predict " in command:
        frames = ase.io.read(folder / command.split(" ")[-1], ":")
        assert [len(atoms) for atoms in frames] == [9, 7]
        assert all(np.isfinite(atoms.get_forces()).all() for atoms in frames)


def test_quick_start_works_as_it_is_written(tmp_path):
    (tmp_path / "resources").symlink_to(ROOT / "resources")
    for command in IN_ORDER:
        run(tmp_path, *forgefield(command))
    assert (tmp_path / "runs/glycolaldehyde_pbe/model/weights.safetensors").exists()
    assert "<html" in (tmp_path / "report.html").read_text()
    for block in blocks(ROOT / "docs/quick_start.md", "python"):
        assert run(tmp_path, sys.executable, "-c", block)


def test_inspection_prints_what_is_shown(folder):
    page = ROOT / "docs/data.md"
    command = next(c for c in commands("forgefield") if c.startswith("forgefield inspect resources"))
    printed = "".join(f"{line.rstrip()}\n" for line in run(folder, *forgefield(command)).splitlines())
    assert printed == blocks(page, "text")[0]


def test_predictions_are_shown():
    assert any(" predict " in command for command in commands("forgefield"))


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python_examples_run(folder, page):
    for block in blocks(page, "python"):
        if "my_run/metrics.json" in block and not (folder / "runs/my_run/metrics.json").exists():
            for verb in ("train", "test"):
                run(folder, *forgefield(next(c for c in commands("forgefield") if f" {verb} my_run.yaml" in c)))
        assert run(folder, sys.executable, "-c", block) or "print(" not in block


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "yaml")], ids=lambda page: page.name)
def test_examples_of_configuration_are_valid(page):
    for block in blocks(page, "yaml"):
        content = yaml.safe_load(block)
        if "runs" in content:  # beside what the default configuration has
            default = yaml.safe_load((ROOT / "config/config.yaml").read_text())
            load_config(default | content | {"models": default["models"] | content["models"]})
        else:
            is_whole = content.keys() & {"dataset", "train_path"}
            load_config(content if is_whole else {"datasets": {"example": content}})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [t for t in targets if not (page.parent / t).exists()] == []
