"""Extended XYZ files are cut between frames, and read the same by any number of processes."""

import os
from io import BytesIO

import ase
import ase.io
import numpy as np
import pytest

from forgefield.config.dataset import DatasetConfig
from forgefield.data.convert import convert_dataset
from forgefield.data.sources import extxyz
from forgefield.data.sources.extxyz import cut, read_extxyz
from forgefield.data.sources.frames import ReadOptions
from forgefield.data.sources.workers import in_order
from forgefield.errors import MachineError, UserError


def molecule(i):
    random = np.random.default_rng(i)
    n = 1 + i % 5
    atoms = ase.Atoms("OHHCN"[:n], 3 * np.arange(3 * n).reshape(n, 3) + random.normal(size=(n, 3)))
    atoms.info["energy"], atoms.arrays["forces"] = -10.0 * n, random.normal(size=(n, 3))
    return atoms


@pytest.fixture
def path(tmp_path):
    ase.io.write(tmp_path / "a.xyz", [molecule(i) for i in range(60)])
    return tmp_path / "a.xyz"


@pytest.mark.parametrize("chunk_bytes", [1, 1000, 10**6])
def test_chunks_are_whole_frames_and_all_of_the_file(path, chunk_bytes):
    with open(path, "rb") as file:
        chunks = list(cut(file, chunk_bytes))
    assert b"".join(frame for chunk in chunks for frame in chunk.frames) == path.read_bytes()
    numbers = [chunk.first + i for chunk in chunks for i in range(len(chunk.frames))]
    assert numbers == list(range(60))
    assert all(int(frame.split(b"\n")[0]) == len(frame.splitlines()) - 2 for c in chunks for frame in c.frames)


def test_frames_are_those_of_ase(path, monkeypatch):
    monkeypatch.setattr(extxyz, "CHUNK_BYTES", 500)
    expected = list(ase.io.iread(path, ":"))
    for found, atoms in zip(read_extxyz(path, ReadOptions()), expected, strict=True):
        np.testing.assert_array_equal(found.positions, atoms.positions)
        np.testing.assert_array_equal(found.values["forces"], atoms.calc.results["forces"])
        assert found.values["energy"] == atoms.calc.results["energy"]


def test_blank_lines_between_frames_hide_nothing(path):
    """ASE stops at the first one."""
    path.write_bytes(path.read_bytes() + b"\n \r\n" + path.read_bytes() + b"\n")
    assert len(list(ase.io.iread(path, ":"))) == 60
    assert len(list(read_extxyz(path, ReadOptions()))) == 120


def test_cells_in_the_style_of_adf():
    frame = b"1\nadf\nH 0 0 0\nVEC1 3 0 0\nVEC2 0 4 0\nVEC3 0 0 5\n"
    [chunk] = cut(BytesIO(2 * frame), 10**6)
    assert chunk.frames == [frame, frame]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda text: text.replace(b"\n5\n", b"\nfive\n", 1), "'five"),
        (lambda text: text.replace(b"\nN ", b"\nN \xff", 1), "it is not UTF-8 text"),
        (lambda text: text.replace(b"\nN ", b"\nN x", 1), "x.* where a number is expected"),
    ],
    ids=["number of atoms", "encoding", "number"],
)
def test_a_mistake_is_in_the_frame_that_is_named_and_frames_before_it_are_read(path, spoil, reason):
    path.write_bytes(spoil(path.read_bytes()))
    frames = read_extxyz(path, ReadOptions(remedy="set `format`"))
    for i in range(4):
        assert len(next(frames).numbers) == i + 1
    with pytest.raises(UserError, match=rf"a\.xyz, frame 4: ASE cannot read it as extxyz: .*{reason}.*; repair it or"):
        next(frames)


def test_a_file_that_ends_within_a_frame(path):
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match=r"a\.xyz, frame 59: ASE cannot read it as extxyz: "):
        list(read_extxyz(path, ReadOptions()))


def test_several_processes_give_the_same_bytes(path, tmp_path, monkeypatch):
    monkeypatch.setattr(extxyz, "WORTH_BYTES", 1)
    monkeypatch.setattr(extxyz, "CHUNK_BYTES", 500)
    config = DatasetConfig(source=str(path))
    for jobs in (1, 2):
        convert_dataset("a", config, tmp_path / str(jobs), jobs=jobs)
    for file in ("train.h5", "valid.h5", "test.h5", "conversion.json"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()


def test_a_mistake_ends_several_processes_too(path, monkeypatch):
    monkeypatch.setattr(extxyz, "WORTH_BYTES", 1)
    monkeypatch.setattr(extxyz, "CHUNK_BYTES", 500)
    path.write_bytes(path.read_bytes().replace(b"\nN ", b"\nN x", 1))
    with pytest.raises(UserError, match=r"a\.xyz, frame 4: "):
        list(read_extxyz(path, ReadOptions(jobs=2)))


def test_the_part_that_is_read_grows_to_all(path, monkeypatch):
    parts = []
    monkeypatch.setattr(extxyz, "CHUNK_BYTES", 1000)
    list(read_extxyz(path, ReadOptions(progress=parts.append)))
    assert len(parts) > 5
    assert parts == sorted(parts)
    assert parts[-1] == 1.0


def test_a_killed_process_is_a_fault_of_the_machine():
    with pytest.raises(MachineError, match="was killed"):
        list(in_order(os._exit, [9], 2))
