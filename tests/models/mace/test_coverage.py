"""The table of docs/models.md: a row for every part that the settings know, and tests that exist."""

import re
from typing import get_args

import pytest

from forgefield.models.mace.readouts import GATES
from forgefield.models.mace.settings import InteractionName, MaceSettings, ReadoutName


@pytest.fixture(scope="module")
def rows(root) -> dict[str, str]:
    """Feature and test of each row."""
    found = re.findall(r"^\| (.+) \| yes \| [\w ]+ \| `(.+)` \|$", (root / "docs/models.md").read_text(), re.MULTILINE)
    return dict(found)


def choices(field: str) -> tuple:
    """What a setting of one of a few words, or None, can be."""
    annotation = MaceSettings.model_fields[field].annotation
    words = get_args(annotation)
    return tuple(w for word in words if word is not type(None) for w in (get_args(word) or (word,)))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("interaction", get_args(InteractionName)),
        ("readout", get_args(ReadoutName)),
        ("radial functions", choices("radial_type")),
        ("distance transform", choices("distance_transform")),
        ("gate", tuple(GATES)),
    ],
)
def test_every_part_has_a_row(rows, kind, names):
    assert len(names) > 1
    assert [name for name in names if f"{kind} `{name}`" not in rows] == []


class Collected:
    """A plugin that notes the names of the tests that pytest collects."""

    def __init__(self):
        self.names: set[str] = set()

    def pytest_collection_finish(self, session):
        for item in session.items:
            name = item.nodeid.removeprefix("tests/")
            self.names |= {name, name.split("[")[0]}


def test_every_named_test_exists(root, rows, monkeypatch):
    monkeypatch.chdir(root)
    files = sorted({"tests/" + test.split("::")[0] for test in rows.values()})
    collected = Collected()
    # in this process, which has loaded the engines already
    assert pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *files], plugins=[collected]) == 0
    assert len(rows) > 40
    assert [test for test in rows.values() if test not in collected.names] == []
