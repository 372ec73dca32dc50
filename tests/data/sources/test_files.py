"""Paths, globs and lists of a config, and what they name."""

import pytest

from forgefield.data.sources import find_files
from forgefield.errors import UserError


@pytest.fixture
def directory(tmp_path):
    for name in ("b.xyz", "a.xyz", "c[1].xyz", "sub/d.xyz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n\nH 0 0 0\n")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("b.xyz", ["b.xyz"]),
        ("*.xyz", ["a.xyz", "b.xyz", "c[1].xyz"]),
        ("**/d.xyz", ["d.xyz"]),
        ("c[1].xyz", ["c[1].xyz"]),
        (["b.xyz", "[ac]*.xyz"], ["b.xyz", "a.xyz", "c[1].xyz"]),
    ],
)
def test_found(directory, source, names):
    entries = [source] if isinstance(source, str) else source
    assert [file.name for file in find_files([directory / entry for entry in entries])] == names


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("bb.xyz", r"bb.xyz: no such file; did you mean .*b.xyz\?"),
        ("nowhere/a.xyz", r"nowhere/a.xyz: no such file \(looked from /"),
        ("*.npz", r"\*.npz: no file matches"),
    ],
)
def test_not_found(directory, source, match):
    with pytest.raises(UserError, match=match):
        find_files(directory / source)


def test_empty_file(directory):
    (directory / "a.xyz").write_text("")
    with pytest.raises(UserError, match=r"a.xyz: empty file"):
        find_files(directory / "*.xyz")


def test_a_file_named_twice(directory):
    with pytest.raises(UserError, match=r"b.xyz: named twice; its frames would count twice, so name it once"):
        find_files([directory / "*.xyz", directory / "sub" / ".." / "b.xyz"])


def test_nothing_named():
    with pytest.raises(UserError, match="names no source file"):
        find_files([])
