import os
import subprocess
import sys

from forgefield.trainers.progress import TrainingProgress

ROW = {
    "epoch": 1,
    "step": 2,
    "lr": 0.1,
    "train_loss": 0.5,
    "valid_loss": 0.25,
    "valid_energy_mae_meV_per_atom": 3.0,
    "valid_forces_mae_meV_per_A": 40.0,
    "data_wait_ms_per_step": 0.02,
    "seconds": 1.5,
}
LINE = "epoch 1/2  train loss 0.5  valid loss 0.25  energy MAE 3 meV/atom  force MAE 40 meV/Å  lr 0.1  1.5 s"


def report(quiet=False):
    with TrainingProgress(epochs=2, steps=2, quiet=quiet) as progress:
        progress.step(0.6)
        progress.step(0.4)
        progress.epoch(ROW)


def test_one_plain_line_per_epoch_without_a_terminal(capfd):
    report()
    assert capfd.readouterr() == ("", LINE + "\n")


def test_quiet(capfd):
    report(quiet=True)
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminal():
    ours, theirs = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "160"}
    code = f"import runpy; runpy.run_path({__file__!r})['report']()"
    subprocess.run([sys.executable, "-c", code], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert LINE in shown
    assert "valid force MAE 40 meV/Å (epoch 1)" in shown.replace(LINE, "")
    assert "epoch 2/2" in shown
