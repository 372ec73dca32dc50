import pytest

from forgefield import files
from forgefield.errors import UserError
from forgefield.files import atomic_directory, atomic_file, read_json, remove_leftovers, write_json


def test_json_comes_back(tmp_path):
    write_json(tmp_path / "a.json", {"b": [1, None]})
    assert read_json(tmp_path / "a.json") == {"b": [1, None]}


@pytest.mark.parametrize("content", [b"{", b"", b"\xff{}", b"[" * 100_000])
def test_a_file_that_is_not_json_is_named_in_one_line(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.json: not JSON \(.*\); remove it") as caught:
        read_json(tmp_path / "a.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[]", "3", "null", '"text"'])
def test_a_file_without_an_object_is_named_with_the_way_out(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UserError, match=r"a\.json: holds a \w+, expected an object with keys; train again"):
        read_json(tmp_path / "a.json", "train again")


def test_an_error_names_the_path_that_was_asked_for(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(IsADirectoryError) as caught, atomic_file(tmp_path / "there") as temporary:
        temporary.write_text("x")
    assert caught.value.filename == str(tmp_path / "there")
    with pytest.raises(FileNotFoundError) as caught, atomic_directory(tmp_path / "new") as temporary:
        (temporary / "a" / "b").write_text("x")
    assert caught.value.filename == str(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_new_directories_are_on_disk_before_what_is_in_them(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(files, "sync", synced.append)
    with atomic_directory(tmp_path / "run" / "checkpoints" / "epoch_1"):
        pass
    assert set(synced[:2]) == {tmp_path, tmp_path / "run"}


def test_what_killed_processes_have_left_is_removed_and_nothing_else(tmp_path):
    kept = [".lock", "a.tmp", ".bashrc.old", ".x/.a.json.tmp", "checkpoints/epoch_1", "data/train.h5"]
    left = [".a.json.12.tmp", ".model.12.tmp/.b.json.12.tmp", "checkpoints/.epoch_2.12.old/a", "data/.train.h5.12.tmp"]
    for name in (*kept, *left):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(found) == sorted(kept)
    assert not list(tmp_path.rglob("*.12.*"))
    remove_leftovers(tmp_path / "none")
