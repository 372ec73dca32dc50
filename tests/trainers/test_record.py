import json
from dataclasses import asdict

from forgefield.trainers.record import SavedRecord, TrainingRecord


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


def test_comes_back_from_json():
    record = TrainingRecord()
    record.add(row(1, 2.0))
    record.partial.steps, record.partial.loss_sum = 3, 0.1 + 0.2
    again = TrainingRecord.read(json.loads(json.dumps(asdict(record))))
    assert again == record
    assert (again.place, again.step) == ((1, 3), 13)
    SavedRecord.model_validate(asdict(record))
