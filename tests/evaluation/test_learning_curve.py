import pytest

from forgefield.evaluation.learning_curve import learning_curve_figure

HEAD = "epoch,train_loss,valid_loss,valid_energy_mae_meV_per_atom,valid_forces_mae_meV_per_A\n"


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ("1,3,2,9,80\n2,2,1,,40\n3,1,1,8,50\n4,0.5,1.5,7,60\n", 2),  # the first of equal losses, as training keeps it
        ("1,3,,,\n2,2,,,\n", 2),
    ],
)
def test_a_star_marks_the_epoch_whose_model_was_kept(tmp_path, rows, best):
    (tmp_path / "history.csv").write_text(HEAD + rows)
    loss, error = learning_curve_figure(tmp_path / "history.csv").axes
    stars = [line for line in (*loss.lines, *error.lines) if line.get_marker() == "*" and len(line.get_xdata())]
    assert {line.get_xdata()[0] for line in stars} == {best}
    assert f"best epoch: {best}" in [text.get_text() for text in loss.get_legend().get_texts()]
    assert stars[0].get_ydata()[0] == 2  # the training loss there
