import pytest

from forgefield.config.yaml import parse_yaml, read_yaml
from forgefield.errors import UserError


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e-3", 1e-3),
        ("1E3", 1e3),
        ("-.5", -0.5),
        ("2.", 2.0),
        ("12", 12),
        ("true", True),
        ("null", None),
        ("No", "No"),  # nobelium
        ("on", "on"),
        ("2024-01-01", "2024-01-01"),
        (".", "."),
        ("1e", "1e"),
    ],
)
def test_values(word, value):
    parsed = parse_yaml(word, "text")
    assert parsed == value
    assert type(parsed) is type(value)


def test_merge_keys_still_work():
    text = "a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b, x: 3}\n"
    assert parse_yaml(text, "text")["c"] == {"x": 3, "y": 2}


def test_a_key_given_twice(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("datasets:\n  a: {source: x}\n  a: {source: y}\n")
    with pytest.raises(UserError, match=r"config\.yaml line 3: not valid YAML: a is given twice"):
        read_yaml(path)


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\tb: 1", "a: !!python/name:os.system x", "a: \x00"])
def test_not_yaml(text):
    with pytest.raises(UserError, match=r"text.*: not valid YAML: "):
        parse_yaml(text, "text")


def test_not_readable(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\xe9")
    for path in (tmp_path, tmp_path / "latin.yaml"):
        with pytest.raises(UserError, match="not readable"):
            read_yaml(path)
