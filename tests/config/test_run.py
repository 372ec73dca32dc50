import pytest

from forgefield.config import Config, load_config
from forgefield.errors import UserError


def test_without_runs_there_is_one_with_the_names_of_its_parts(load):
    assert load().run_names == ["ethanol-small-jax"]
    run = load("backend=fabric").run("ethanol-small-fabric")
    assert (run.name, run.dataset, run.model, run.backend) == ("ethanol-small-fabric", "ethanol", "small", "fabric")


def test_runs_override_the_top_level_by_name(load):
    config = load("training.epochs=7", "training.ema=null", "runs={slow: {training: {lr: 1e-5}}, base: {}}")
    assert config.run_names == ["slow", "base"]
    slow, base = config.run("slow"), config.run("base")
    assert (slow.training.epochs, slow.training.lr, slow.training.ema) == (7, 1e-5, None)
    assert base.training == config.training.model_copy(update={"batching": "fixed"})


def test_runs_may_name_what_the_top_level_does_not(text):
    config = load_config(text.replace("dataset: ethanol\n", ""), ["runs={a: {dataset: ethanol}}"])
    assert config.run("a").dataset == "ethanol"


def test_numbers_are_names_too():
    config = load_config(
        {"dataset": 2024, "model": "m", "datasets": {2024: {"source": "a"}}, "models": {"m": {"elements": ["H"]}}}
    )
    assert config.run_names == ["2024-m-jax"]


def test_statistics_are_those_of_the_top_level(load, mistake):
    assert load("statistics.outlier_threshold=3").run("ethanol-small-jax").statistics.outlier_threshold == 3
    assert mistake("runs={a: {statistics: {}}}").startswith("config: runs.a.statistics: not a key of a run")


def test_devices_of_all_nodes(load):
    assert load("devices=2", "n_nodes=4").run("ethanol-small-jax").n_devices == 8


def test_batching_is_that_of_the_backend(load):
    assert load().run("ethanol-small-jax").training.batching == "fixed"
    assert load("backend=fabric").run("ethanol-small-fabric").training.batching == "dynamic"
    chosen = load("backend=fabric", "training.batching=fixed").run("ethanol-small-fabric")
    assert chosen.training.batching == "fixed"
    of_one = load("runs={a: {backend: fabric}, b: {}}")
    assert [of_one.run(name).training.batching for name in "ab"] == ["dynamic", "fixed"]
    assert {of_one.run(name).training.balance for name in "ab"} == {"exact"}


@pytest.mark.parametrize(
    ("settings", "batch"), [("batching: fixed", 9), ("balance: exact", 8), ("balance: repeat", 9)], ids=str
)
def test_a_batch_that_three_processes_cannot_share_evenly(load, settings, batch):
    overrides = ["backend=fabric", "devices=3", f"training={{batch: 8, {settings}}}"]
    assert load(*overrides).run("ethanol-small-fabric").step_batch == batch


def test_unknown_run(load):
    with pytest.raises(UserError, match="runs: no run is named 'ethanol-small'; did you mean ethanol-small-jax"):
        load().run("ethanol-small")


@pytest.mark.parametrize("given", [{}, {"dataset": "a", "datasets": {"a": {"source": "a.npz"}}}])
def test_a_configuration_for_one_stage_need_not_name_a_run(given):
    config = load_config(given)
    missing = "model" if given else "dataset"
    with pytest.raises(UserError, match=f"^{missing}: missing; expected the name of an entry of {missing}s"):
        _ = config.run_names


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["dataset=ethanole"], "dataset: datasets has no entry 'ethanole'; did you mean ethanol?"),
        (["model=large"], "model: models has no entry 'large'; expected one of: small"),
        (["training.batching=dynamic"], "training.batching is dynamic, but backend is jax"),
        (
            ["training.optimizer=muon"],
            "training.optimizer is muon, but backend is jax; write adamw, or",
        ),
        (
            ["training.precision=bf16-mixed"],
            "training.precision is bf16-mixed, but backend is jax; write float32,",
        ),
        (["training.micro_batches=4"], "training.micro_batches is 4, but backend is jax; write 1, or backend: fabric"),
        (["training.balance=repeat"], "training.balance is repeat, but backend is jax"),
        (["training.dynamic_margin=1.2"], "training.dynamic_margin is given, but batching is fixed"),
        (
            ["backend=fabric", "training={batching: fixed, dynamic_margin: 1.2}"],
            "training.dynamic_margin is given, but batching is fixed",
        ),
        (["backend=fabric", "parallelism=mpi"], "parallelism is mpi, but backend fabric has its own"),
        (["backend=fabric", "training.kernels=cuequivariance"], "training.kernels is cuequivariance, but backend is"),
        (["parallelism=single", "devices=2"], "parallelism is single, but devices x n_nodes is 2"),
        (
            ["training={batch: 200, drop_last: true}"],
            "training.drop_last leaves nothing of 100 training structures, which do not fill one batch of 200; lower",
        ),
        (["devices=3"], "training.batch is 8, not a multiple of devices x n_nodes = 3; write 9"),
        (
            ["parallelism=mpi", "devices=2", "n_nodes=8"],
            "training.batch is 8, not a multiple of devices x n_nodes = 16",
        ),
        (["training.schedule={kind: constant, constant_steps: 4}"], "training.schedule: constant_steps is given, but"),
        (
            ["training={epochs: 10, batch: 8, schedule: {warmup_steps: 30, constant_steps: 100}}"],
            "training.schedule.warmup_steps + constant_steps: expected fewer than the 130 steps of training",
        ),
        (
            ["training={epochs: 10, batch: 8, schedule: {warmup_steps: 130}}"],
            "training.schedule.warmup_steps: expected fewer than the 130 steps of training (10 epochs), found 130",
        ),
    ],
)
def test_impossible_combinations(mistake, overrides, message):
    assert mistake(*overrides).startswith(f"config: {message}")


def test_warmup_just_shorter_than_training(load):
    load("training={epochs: 10, batch: 8, schedule: {warmup_steps: 129}}")


def test_a_mistake_in_a_run_names_the_run(mistake):
    assert mistake("runs={a: {training: {lrr: 1}}}") == (
        "config: runs.a.training.lrr: unknown key; did you mean runs.a.training.lr?"
    )
    assert mistake("runs={a: {model: large}}").startswith("config: runs.a.model: models has no entry 'large'")
    assert mistake("runs={}") == "config: runs: expected at least 1 entry, found {}"
    assert mistake("runs={a: {lr: 1}}").startswith("config: runs.a.lr: not a key of a run")
    assert mistake("runs={a: {devices: 3}}").startswith("config: runs.a.training.batch is 8")


def test_two_pairs_whose_statistics_would_share_a_file():
    content = {
        "datasets": {name: {"source": "a.npz"} for name in ("a", "a-b")},
        "models": {name: {"elements": ["H"]} for name in ("b-c", "c")},
        "runs": {"one": {"dataset": "a", "model": "b-c"}, "two": {"dataset": "a-b", "model": "c"}},
    }
    with pytest.raises(UserError, match=r"runs\.two: the names a-b-c can be read in two ways"):
        load_config(content)


def test_the_dump_is_a_source_of_the_same(load):
    config = load("training.ema=null")
    assert Config.model_validate_json(config.model_dump_json()) == config
    assert load_config(config.model_dump()).model_dump_json() == config.model_dump_json()
