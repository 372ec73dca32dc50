import pytest

from forgefield.config.training import TrainingConfig
from forgefield.errors import UserError
from forgefield.trainers.changes import before_continuing
from forgefield.trainers.checkpoints import save_checkpoint, saved_checkpoints
from forgefield.trainers.history import HistoryRow
from forgefield.trainers.record import Place

PRINT = {"training.lr": 0.1, "data/train.h5": "f" * 64}
NOTES = {"training.epochs": 5, "training.eval_batch": 8, "jax": "1"}
PARTIAL = {"steps": 7, "loss_sum": 0.0, "waited": 0.0, "seconds": 0.0}
RECORD = {"rows": [], "best_epoch": 0, "best_loss": None, "partial": PARTIAL}


@pytest.fixture
def check(tmp_path):
    """A function that compares with a checkpoint, of a training that is complete or not."""

    def make(fingerprint=PRINT, notes=NOTES, allowed=(), complete=False, kind="cosine", rows=()):
        record = RECORD | {"rows": list(rows)}
        content = {"fingerprint": PRINT, "notes": NOTES, "complete": complete, "record": record}
        save_checkpoint(tmp_path / "now", Place(0, 7), {}, content)
        training = TrainingConfig(schedule={"kind": kind}, epochs=notes["training.epochs"])
        made_from = {"data/train.h5": "ethanol.xyz"}
        folders = tmp_path / "now", tmp_path / "aside"
        make.remarks = before_continuing(*folders, training, fingerprint, notes, allowed, made_from)
        return [len(saved_checkpoints(tmp_path / name)) for name in ("now", "aside")]

    return make


def test_nothing_has_changed(check, capsys):
    assert check() == [1, 0]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"training.lr": 0.2}, r"training.lr was 0.1 and is now 0.2; .* `--allow-changed training.lr` "),
        ({"data/train.h5": "e" * 64}, r"data/train.h5 changed \(made from ethanol.xyz\); .*-changed data/train.h5` "),
        ({"devices": 2}, r"devices was None and is now 2; .* \(or `FORGEFIELD_ALLOW_CHANGED='devices' snakemake "),
    ],
)
def test_what_decides_the_result_is_refused_in_mid_run(check, change, words, capsys):
    with pytest.raises(UserError, match=rf"now: the training is after 7 steps of epoch 1, and {words}"):
        check(PRINT | change)
    assert check(PRINT | change, allowed=list(change)) == [1, 0]
    assert "goes on as --allow-changed says, though " in capsys.readouterr().err
    assert [line.split(":")[0] for line in check.remarks] == ["after 7 steps of epoch 1"]


def test_a_complete_training_is_set_aside_instead_with_its_results(check, tmp_path, capsys):
    # of which some were moved before a kill, and one of them was made again
    results = "config.yaml", "metrics.json", "predictions_test.h5", "parity_energy.svg", "error_by_force.png"
    for name in ("model/model.json", *results, "now/history.csv", "now/model/model.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    for number in ("1", "2"):
        assert check(PRINT | {"training.lr": 0.2}, complete=True) == [0, 0]
        assert [path.name for path in tmp_path.iterdir()] == ["aside"]
        said = capsys.readouterr().err
        assert "training starts anew, because training.lr was 0.1 and is now 0.2; " in said
        assert said.endswith(f"is in {tmp_path}/aside/{number}\n")
        assert len(saved_checkpoints(tmp_path / "aside" / number)) == 1
    # nothing of the first is lost
    assert {path.name for path in (tmp_path / "aside" / "1").iterdir()} >= {"model", *results, "history.csv"}


def test_a_key_to_allow_that_does_not_exist(check):
    with pytest.raises(UserError, match=r"--allow-changed training.rl: no such key; did you mean training.lr\?"):
        check(allowed=["training.rl"])


def test_a_key_that_may_always_change_needs_no_leave(check, capsys):
    check(allowed=["training.epochs"])
    assert capsys.readouterr().err == "note: --allow-changed training.epochs: not needed, it may always change\n"
    with pytest.raises(UserError, match=r"no such key; did you mean training.eval_batch\?"):
        check(allowed=["eval_batch"])


def test_fewer_epochs_than_are_done_train_nothing(check, capsys):
    rows = [dict.fromkeys(HistoryRow.__annotations__) | {"step": 4}] * 3
    assert check(notes=NOTES | {"training.epochs": 2}, rows=rows) == [1, 0]
    assert capsys.readouterr().err == "note: training.epochs was 5 and is now 2: nothing is left to be trained\n"
    assert check.remarks == []
    # what is complete for the one that asks is set aside where he asks for another
    assert check(PRINT | {"training.lr": 0.2}, NOTES | {"training.epochs": 2}, rows=rows) == [0, 0]


def test_a_key_that_there_is_no_more_can_be_allowed(check):
    now = {key: value for key, value in PRINT.items() if key != "training.lr"}
    with pytest.raises(UserError, match=r"training\.lr was 0\.1 and is now None"):
        check(now)
    assert check(now, allowed=["training.lr"]) == [1, 0]


def test_what_is_harmless_is_noted(check, capsys):
    check(notes=NOTES | {"training.eval_batch": 16, "jax": "2"})
    assert capsys.readouterr().err == (
        "note: jax was 1 and is now 2, training.eval_batch was 8 and is now 16; "
        "that does not change what a step computes, but for rounding\n"
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("constant", "the same training as of 9 epochs in one go"),
        (
            "cosine",
            "from here on the learning rate is that of 9 epochs, but the first 7 steps were made with that of 5",
        ),
    ],
)
def test_more_epochs_continue_with_the_schedule_of_the_longer_training(check, capsys, kind, words):
    check(notes=NOTES | {"training.epochs": 9}, kind=kind)
    assert capsys.readouterr().err == f"note: training.epochs was 5 and is now 9: {words}\n"
    assert bool(check.remarks) == (kind == "cosine")
