"""What more devices give, in the page and its picture: the picture shows what the table says."""

import shutil

import devices
import matplotlib
import scaling_docs


def test_a_row_is_written_and_all_are_drawn(tmp_path):
    page = tmp_path / "parallel.md"
    shutil.copy(scaling_docs.PAGE, page)
    (tmp_path / "images").mkdir()
    rows = scaling_docs.read_rows(page)
    rates = {"jax 1": [1.0, 2.0, 2.0], "jax 2": [1.5, 4.0, 2.0], "mpi 1": [1.0, 1.0, 1.0], "mpi 2": [2.0, 2.0, 3.0]}
    measured = {name: {"structures_per_second": of_rounds} for name, of_rounds in rates.items()}
    scaling_docs.update("9x0e", 4, [1, 2], measured, page)
    new = ["**2.00** (2.00 to 3.00)", "**1.50** (1.00 to 2.00)"]
    assert scaling_docs.read_rows(page) == rows | {("9x0e", "4", "2"): new}
    assert "<svg" in (tmp_path / "images" / "scaling.svg").read_text()
    curves = scaling_docs.curves(scaling_docs.read_rows(page))
    assert curves["9x0e, batch 4: devices of one process"] == [(1, 1.0, 1.0, 1.0), (2, 1.5, 1.0, 2.0)]
    (axes,) = devices.scaling_figure(curves).axes
    assert axes.get_xticks().tolist() == [1, 2]
    assert len(axes.containers) == len(curves) == 2 * len(rows) + 2


def test_the_picture_in_the_docs_is_that_of_its_table(tmp_path):
    figure = devices.scaling_figure(scaling_docs.curves(scaling_docs.read_rows(scaling_docs.PAGE)))
    devices.write_picture(figure, tmp_path / "scaling.svg")
    drawn, kept = ((path / "scaling.svg").read_text() for path in (tmp_path, scaling_docs.PICTURE.parent))
    ours = f"Matplotlib v{matplotlib.__version__}" in kept
    assert drawn == kept or not ours  # another version may draw otherwise
