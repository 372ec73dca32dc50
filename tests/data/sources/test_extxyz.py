"""Extended XYZ files are cut between frames, and read the same by any number of processes."""

import os
from concurrent.futures import wait
from io import BytesIO

import ase
import ase.io
import numpy as np
import pytest

from forgefield.config.dataset import DatasetConfig
from forgefield.data.convert import convert_dataset
from forgefield.data.sources import extxyz, workers
from forgefield.data.sources.extxyz import cut, read_extxyz
from forgefield.data.sources.frames import ReadOptions
from forgefield.data.sources.workers import in_order
from forgefield.errors import MachineError, UserError
from forgefield.files import read_json


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
def test_chunks_are_whole_frames_and_all_of_the_file(path, chunk_bytes, monkeypatch):
    monkeypatch.setattr(extxyz, "CHUNK_BYTES", chunk_bytes)
    with open(path, "rb") as file:
        chunks = list(cut(file))
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
    [chunk] = cut(BytesIO(2 * frame))
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


@pytest.fixture
def others_do_all(monkeypatch):
    """Small pieces of small files go to other processes, and none is done here before these have started."""
    monkeypatch.setattr(extxyz, "WORTH_BYTES", 1)
    monkeypatch.setattr(extxyz, "CHUNK_BYTES", 500)
    monkeypatch.setattr(workers, "AHEAD", 100)
    monkeypatch.setattr(workers, "_any_done", wait)


def test_several_processes_give_the_same_bytes(path, tmp_path, others_do_all):
    """Also where a frame shows a key, of which those who read ahead know nothing: the virial."""
    stress = b'Lattice="90 0 0 0 90 0 0 0 90" stress="1 0 0 0 1 0 0 0 1" pbc="T T T"'
    text = path.read_bytes().replace(b'pbc="F F F"', stress)
    path.write_bytes(text + text.replace(b"stress=", b"virial=", 1) + text)
    config = DatasetConfig(source=str(path), split={"method": "group", "by": "composition"})
    for jobs in (1, 3):
        convert_dataset("a", config, tmp_path / str(jobs), jobs=jobs)
    for file in ("train.h5", "valid.h5", "test.h5", "conversion.json"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "3" / file).read_bytes()
    assert read_json(tmp_path / "3" / "conversion.json", "")["labels"]["virial"] == 180


def test_a_mistake_ends_several_processes_too(path, tmp_path, others_do_all):
    path.write_bytes(path.read_bytes().replace(b"\nN ", b"\nN x", 1))
    with pytest.raises(UserError, match=r"a\.xyz, frame 4: "):
        convert_dataset("a", DatasetConfig(source=str(path)), tmp_path / "out", jobs=2)


def test_this_process_works_while_the_others_start_and_then_they_do():
    code, pids = "__import__('time').sleep(0.02) or __import__('os').getpid()", []
    for _, pid in in_order(eval, iter(lambda: code if len(set(pids)) < 2 else None, None), 2):
        pids.append(pid)
    assert pids[0] == os.getpid()
    assert len(set(pids)) == 2


def test_the_part_that_is_read_grows_to_all(path, monkeypatch):
    parts = []
    monkeypatch.setattr(extxyz, "CHUNK_BYTES", 1000)
    list(read_extxyz(path, ReadOptions(progress=parts.append)))
    assert len(parts) > 5
    assert parts == sorted(parts)
    assert parts[-1] == 1.0


def test_a_killed_process_is_a_fault_of_the_machine(monkeypatch):
    monkeypatch.setattr(workers, "_any_done", wait)
    with pytest.raises(MachineError, match="was killed"):
        list(in_order(os._exit, [9], 2))


@pytest.mark.parametrize(
    "text", ['"1 2 3 4 5 6"', "[1, 2, 3, 4, 5, 6]", '"1 6 5 6 2 4 5 4 3"'], ids=["six", "list", "nine"]
)
@pytest.mark.parametrize("label", ["stress", "virial"])
def test_tensors_of_six_numbers(tmp_path, read, label, text):
    """In the order xx, yy, zz, yz, xz, xy, which ASE refuses."""
    head = 'Lattice="2 0 0 0 2 0 0 0 2" Properties=species:S:1:pos:R:3 energy=-3.0'
    (tmp_path / "a.xyz").write_text(f"2\n{head} {label}={text}\nH 0 0 0\nH 0 0 0.8\n")
    (structure,), _ = read(tmp_path / "a.xyz")
    expected = np.array([[1.0, 6, 5], [6, 2, 4], [5, 4, 3]]) * (-8 if label == "stress" else 1)
    np.testing.assert_allclose(structure.virial, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["a.dat", "a.out", "a"])
def test_files_of_any_name_also_with_a_byte_order_mark(tmp_path, read, name):
    text = "2\nProperties=species:S:1:pos:R:3 energy=-3.0\nH 0 0 0\nH 0 0 0.8\n"
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    (structure,), source = read(tmp_path / name)
    assert (structure.energy, source.files[0]["format"]) == (-3.0, "extxyz")
