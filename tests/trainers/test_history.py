import csv

from test_record import row

from forgefield.trainers.history import summary_line, write_history


def test_csv_keeps_every_digit(tmp_path):
    write_history(tmp_path / "history.csv", [row(1, 0.1), row(2, None)])
    with open(tmp_path / "history.csv") as file:
        first, second = csv.DictReader(file)
    assert float(first["train_loss"]) == 1.0 / 3.0
    assert second["valid_loss"] == ""


def test_summary_leaves_out_what_is_not_known():
    line = summary_line(row(2, 0.25), epochs=9)
    assert line == "epoch 2/9  train loss 0.3333  valid loss 0.25  force MAE 12.3 meV/Å  lr 0.1  0.5 s"
