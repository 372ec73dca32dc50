"""What a shell gets when TAB is pressed, and the examples of `--help`."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from forgefield.cli.app import app
from forgefield.cli.examples import EXAMPLES

CONFIG = {
    "datasets": {"water": {"source": "water.npz", "units": "ase"}, "wax": {"source": "wax.npz", "units": "ase"}},
    "models": {"tiny": {"elements": ["H"]}},
    "dataset": "water",
    "model": "tiny",
    "runs": {"slow": {}, "quick": {}},
}


@pytest.fixture
def complete(tmp_path):
    """What bash is told to complete the last of some words by, in a directory with a configuration."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text(json.dumps(CONFIG))
    (tmp_path / "my.yaml").write_text(json.dumps(CONFIG | {"runs": {"other": {}}}))

    def complete(*words: str) -> list[str]:
        line = {"COMP_WORDS": " ".join(["forgefield", *words]), "COMP_CWORD": str(len(words))}
        environment = os.environ | line | {"_FORGEFIELD_COMPLETE": "complete_bash"}
        program = Path(sys.executable).with_name("forgefield")
        done = subprocess.run([program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["val"], ["validate"]),
        (["convert", "--da"], ["--dataset"]),
        (["convert", "--dataset", "wa"], ["water", "wax"]),
        (["import-model", "--model", ""], ["tiny"]),
        (["train", "--run", ""], ["slow", "quick"]),
        (["train", "my.yaml", "--run", ""], ["other"]),
        (["train", "my.yaml", "training.schedule.w"], ["training.schedule.warmup_steps="]),
        (["train", "my.yaml", "max_e"], ["max_epochs="]),
        (["train", "my"], []),  # a file, which the shell completes itself
    ],
)
def test_words_are_completed(complete, words, expected):
    assert complete(*words) == expected


def test_every_verb_has_examples_with_its_own_options():
    commands = get_command(app).commands
    assert {*EXAMPLES} == {*commands} - {"evaluate"}  # as test
    for verb, lines in EXAMPLES.items():
        for line in lines:
            program, first, *words = shlex.split(line)
            assert (program, first) == ("forgefield", verb)
            commands[verb].make_context(verb, words)


def test_help_has_groups_and_examples(forgefield):
    _, output, _ = forgefield("--help")
    places = [
        output.index(title) for title in ("Start", "Stages, in order", "Look at results", "Use a model", "Examples")
    ]
    assert places == sorted(places)
    assert "forgefield init data.xyz --model MODEL" in output
    _, output, _ = forgefield("train", "--help")
    assert "forgefield train my_run.yaml devices=2" in output
