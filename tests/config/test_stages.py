"""Which change of the configuration reruns which stage."""

import json

import pytest

from forgefield.config import load_config, stage_settings
from forgefield.errors import UserError

RUN = "ethanol-small-jax"
STAGES = {
    "convert": "ethanol",
    "import": "small",
    "statistics": "ethanol-small",
    "train": RUN,
    "evaluate": RUN,
    "plot": RUN,
}


def settings(config):
    return {stage: json.dumps(stage_settings(config, stage, name)) for stage, name in STAGES.items()}


@pytest.mark.parametrize(
    ("override", "stages"),
    [
        ("training.lr=1e-4", {"train"}),
        ("training.seed=1", {"train"}),
        ("training.schedule.kind=constant", {"train"}),
        ("parallelism=single", {"train", "evaluate"}),
        ("devices=2", {"train", "evaluate"}),
        ("slurm={partition: gpu, hours: 2}", set()),
        ("training.eval_batch=16", {"train", "evaluate"}),
        ("training.kernels=reference", {"train", "evaluate"}),
        ("evaluation.splits=[test]", {"evaluate"}),
        ("plots.dpi=100", {"plot"}),
        ("statistics.outlier_threshold=4", {"statistics"}),
        ("datasets.other={source: other.npz}", set()),
        ("models.other={foundation: models/other}", set()),
        # everything that follows from the data is made anew, as its files are
        ("datasets.ethanol.split.train=50", set(STAGES) - {"import"}),
        ("models.small.foundation=models/large", set(STAGES) - {"convert"}),
    ],
)
def test_a_change_concerns_only_the_stages_that_depend_on_it(load, override, stages):
    before, after = settings(load()), settings(load(override))
    assert {stage for stage in STAGES if before[stage] != after[stage]} == stages


def test_runs_do_not_concern_each_other(load):
    before = load("runs={a: {}, b: {training: {lr: 1}}}")
    after = load("runs={a: {}, b: {training: {lr: 2}}}")
    for stage in ("train", "evaluate", "plot"):
        assert stage_settings(before, stage, "a") == stage_settings(after, stage, "a")
    assert stage_settings(before, "train", "b") != stage_settings(after, "train", "b")


@pytest.mark.parametrize("stage", STAGES)
def test_settings_are_a_source_that_gives_the_same_settings(load, stage):
    config = load("training.ema=null", "training.clip_norm=null")
    first = stage_settings(config, stage, STAGES[stage])
    for source in (first, json.dumps(first)):
        again = load_config(source)
        assert stage_settings(again, stage, STAGES[stage]) == first
    assert json.loads(json.dumps(first)) == first


def test_the_training_stage_sees_the_run_as_it_is(load):
    config = load("training.ema=null", "training.loss.energy=5", "devices=2", "runs={mine: {training: {lr: 0.5}}}")
    run = load_config(stage_settings(config, "train", "mine")).run("mine")
    assert run == config.run("mine")


@pytest.mark.parametrize(
    "spelling",
    ["training.lr=0.001", "training.lr=1e-3", "datasets.ethanol.units.energy=kcal mol^-1", "plots.dpi=200"],
)
def test_another_spelling_of_the_same_is_no_change(load, spelling):
    assert settings(load(spelling)) == settings(load())


@pytest.mark.parametrize(
    ("stage", "name", "message"),
    [
        ("trian", RUN, "no stage is named 'trian'; did you mean train?"),
        ("convert", "methanol", "datasets has no entry 'methanol'; did you mean ethanol?"),
        ("import", "smal", "models has no entry 'smal'; did you mean small?"),
        ("statistics", "ethanol-large", "no run has the dataset and model 'ethanol-large'"),
        ("train", "mine", "runs: no run is named 'mine'"),
    ],
)
def test_unknown_names(load, stage, name, message):
    with pytest.raises(UserError) as caught:
        stage_settings(load(), stage, name)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("stage", STAGES)
def test_settings_of_a_model_that_jax_does_not_train_are_a_valid_source(load, stage):
    config = load("models.small.architecture=flashcart", "backend=fabric")
    name = STAGES[stage].replace("jax", "fabric")
    content = stage_settings(config, stage, name)
    assert stage_settings(load_config(content), stage, name) == content
