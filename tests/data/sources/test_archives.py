"""Compressed files and zip archives of several files."""

import bz2
import gzip
import lzma
import shutil
import socket
import zipfile

import ase.io
import numpy as np
import pytest

from forgefield.errors import UserError

COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


@pytest.fixture
def xyz(frames, tmp_path):
    """A file of both frames."""
    ase.io.write(tmp_path / "a.xyz", frames)
    return tmp_path / "a.xyz"


def energies(items):
    return [item.energy for item in items]


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("name", ["a.xyz", "a.npz"])
def test_one_compressed_file(xyz, read, tmp_path, ending, name):
    np.savez(tmp_path / "a.npz", R=[[[0.0, 0, 0], [0, 0, 1]]], z=[1, 1], E=[-31.0], F=np.zeros((1, 2, 3)))
    units = {"energy": "eV", "length": "angstrom"}
    expected, _ = read(tmp_path / name, units=units)
    packed = tmp_path / f"{name}.{ending}"
    packed.write_bytes(COMPRESS[ending]((tmp_path / name).read_bytes()))
    found, source = read(packed, units=units)
    assert energies(found) == energies(expected)
    assert source.files[0]["path"] == str(packed)


@pytest.fixture
def archive(xyz, frames, tmp_path):
    """A zip archive of two files, in folders, with what a file manager leaves behind."""
    ase.io.write(tmp_path / "b.xyz", [frames[1].copy(), frames[0]])  # the first has no labels
    with zipfile.ZipFile(tmp_path / "both.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.write(tmp_path / "b.xyz", "late/z.xyz")
        file.write(xyz, "early/a.xyz")
        file.writestr("__MACOSX/early/._a.xyz", "rubbish")
        file.writestr(".DS_Store", "rubbish")
    return tmp_path / "both.zip"


def test_a_zip_archive_is_its_files_one_after_the_other(archive, frames, read):
    items, source = read(archive)
    first, second = (atoms.calc.results["energy"] for atoms in frames)
    assert energies([items[0], items[1], items[3]]) == pytest.approx([first, second, first])
    assert (items[2].file, items[2].frame, items[2].source_index) == (f"{archive}/late/z.xyz", 0, 2)
    assert [(file["path"], file["frames"]) for file in source.files] == [(str(archive), 4)]


def test_a_member_of_no_known_format(archive, read):
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("README.txt", "hello")
    with pytest.raises(
        UserError, match=r"both\.zip/README\.txt: of a format .*, or unpack the archive and name the fil"
    ):
        read(archive)


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_compressed_file_that_is_not_named_so(xyz, read, tmp_path, ending):
    (tmp_path / "b.xyz").write_bytes(COMPRESS[ending](xyz.read_bytes()))
    with pytest.raises(UserError, match=rf"b\.xyz: compressed, but not named so; rename it to b\.xyz\.{ending}"):
        read(tmp_path / "b.xyz")


def test_files_of_two_formats_in_one_archive(archive, read, tmp_path):
    np.savez(tmp_path / "a.npz", R=[[[0.0, 0, 0], [0, 0, 1]]], z=[1, 1], E=[-31.0], F=np.zeros((1, 2, 3)))
    with zipfile.ZipFile(archive, "a") as file:
        file.write(tmp_path / "a.npz", "zz.npz")
    with pytest.raises(UserError, match=r"both\.zip/zz\.npz: of another format .* than the files before; unpack "):
        read(archive, units={"energy": "eV", "length": "angstrom"})


def test_a_mistake_in_a_member_names_it(archive, read):
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("bad.xyz", "2\n\nH 0 0 0\n")
    with pytest.raises(UserError, match=r"both\.zip/bad\.xyz, frame 0: ASE cannot read it as extxyz"):
        read(archive)


@pytest.mark.parametrize("ending", [*COMPRESS, "zip"])
def test_damaged(xyz, archive, read, tmp_path, ending):
    packed = archive if ending == "zip" else tmp_path / f"a.xyz.{ending}"
    if ending != "zip":
        packed.write_bytes(COMPRESS[ending](xyz.read_bytes()))
    packed.write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    with pytest.raises(UserError, match=rf"{ending}: cannot be decompressed \(.*\); get the file again"):
        read(packed)


@pytest.mark.parametrize("name", ["a.xyz", "a.xyz.gz"])
def test_a_file_that_cannot_be_read(read, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as file:
        file.bind(name)
        with pytest.raises(UserError, match=rf"{name}: cannot be read \(No such device or address\)$"):
            read(tmp_path / name)


def test_an_archive_of_nothing(read, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w"):
        pass
    with pytest.raises(UserError, match=r"a\.zip: no files in it"):
        read(tmp_path / "a.zip")


def test_copies_are_gone_afterwards(archive, read, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    read(archive)
    assert list((tmp_path / "tmp").iterdir()) == []
    shutil.rmtree(tmp_path / "tmp")
