"""Which files make a user's own model."""

import pytest

from forgefield.models.plugin.code import code_files


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files into a directory that Python looks into."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    return write


def names(place, folder):
    return [str(path.relative_to(folder)) for path in code_files(place)]


def test_a_module_and_what_it_imports_from_its_directory(write, tmp_path):
    write(my_pairs="import torch, my_radial\n", my_radial="from my_parts.cut import f\nimport my_pairs\n")
    write(my_parts__in____init__="", my_parts__in__cut="f = 1", my_other="")
    assert names("my_pairs:Pairs", tmp_path) == [
        "my_pairs.py",
        "my_parts/__init__.py",
        "my_parts/cut.py",
        "my_radial.py",
    ]


def test_all_of_a_package(write, tmp_path):
    write(my_package__in____init__="", my_package__in__pairs="from . import parts", my_package__in__parts="")
    expected = ["my_package/__init__.py", "my_package/pairs.py", "my_package/parts.py"]
    assert names("my_package.pairs:Pairs", tmp_path) == expected


@pytest.mark.parametrize("place", ["no_such_module:Pairs", "sys:path", "torch_no.pairs:Pairs"])
def test_nothing_where_there_is_no_file(place):
    assert code_files(place) == []


def test_a_module_that_does_not_parse_is_itself(write, tmp_path):
    write(my_broken="def")
    assert names("my_broken:Pairs", tmp_path) == ["my_broken.py"]
