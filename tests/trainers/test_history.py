import csv

from forgefield.trainers.history import TrainingRecord, summary_line, write_history


def row(epoch, valid_loss):
    return {
        "epoch": epoch,
        "step": 10 * epoch,
        "lr": 0.1,
        "train_loss": 1.0 / 3.0,
        "valid_loss": valid_loss,
        "valid_energy_mae_meV_per_atom": None,
        "valid_forces_mae_meV_per_A": 12.3456,
        "data_wait_ms_per_step": 0.02,
        "seconds": 0.5,
    }


def test_best_epoch_and_early_stopping():
    record = TrainingRecord()
    better = [record.add(row(i + 1, loss)) for i, loss in enumerate([3.0, 2.0, 2.0, 2.5])]
    assert better == [True, True, False, False]
    assert (record.best_epoch, record.best_loss) == (2, 2.0)
    assert record.finished(epochs=10, patience=2)
    assert not record.finished(epochs=10, patience=3)
    assert not record.finished(epochs=10, patience=None)
    assert record.finished(epochs=4, patience=None)


def test_without_validation_the_last_epoch_is_best():
    record = TrainingRecord()
    assert record.add(row(1, None))
    assert record.add(row(2, None))
    assert record.best_epoch == 2


def test_csv_keeps_every_digit(tmp_path):
    write_history(tmp_path / "history.csv", [row(1, 0.1), row(2, None)])
    with open(tmp_path / "history.csv") as file:
        first, second = csv.DictReader(file)
    assert float(first["train_loss"]) == 1.0 / 3.0
    assert second["valid_loss"] == ""


def test_summary_leaves_out_what_is_not_known():
    line = summary_line(row(2, 0.25), epochs=9)
    assert line == "epoch 2/9  train loss 0.3333  valid loss 0.25  force MAE 12.3 meV/Å  lr 0.1  0.5 s"
