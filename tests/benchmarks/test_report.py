"""Tables come from measured rows only, and a page changes between a script's markers only."""

import pytest
import rows
from report import END, begin, markdown, update_page
from rows import Results, Row

ROW = Row("32x0e", "3bpa", "float32", "inference")
MEASURED = {
    "title": "8 x 3BPA",
    "origin": "frames",
    "structures": 8,
    "seconds": {"jax": [0.008, 0.016, 0.008], "torch": [0.08, 0.08, 0.096]},
    "threads": {"seconds": {"1": 0.16, "2": 0.088}, "best": 2},
}


@pytest.fixture
def results(tmp_path) -> Results:
    made = Results(tmp_path / "results.json")
    made.add(ROW, MEASURED)
    return made


def test_a_ratio_is_the_median_of_the_rounds_ratios(results):
    line = markdown(results, [ROW]).splitlines()[-1]
    assert line == "| 32x0e | 8 x 3BPA | float32 | 20.00 | 10.00 | 1.00 | **10.0** (5.0 to 12.0) | 3 |"


def test_what_was_not_measured_says_so(results):
    line = markdown(results, [ROW, ROW._replace(model="64x0e")]).splitlines()[-1]
    assert line.startswith("| 64x0e | 3bpa | float32 | not measured |")
    assert line.count("|") == 9


def test_rows_are_kept_between_runs_on_one_machine_only(results, monkeypatch):
    assert Results(results.path).rows == {ROW: MEASURED}
    monkeypatch.setattr(rows, "machine", lambda packages: {"processor": "another"})
    assert Results(results.path).rows == {}


def test_a_page_is_rewritten_between_the_markers_of_a_script(tmp_path):
    page = tmp_path / "page.md"
    other = f"{begin('other.py')}\n\nother\n\n{END}\n"
    page.write_text(f"before\n{begin('one.py')}\nold\n{END}\nafter\n{other}")
    update_page(page, "one.py", "new\n")
    update_page(page, "one.py", "newer\n")
    assert page.read_text() == f"before\n{begin('one.py')}\n\nnewer\n\n{END}\nafter\n{other}"
