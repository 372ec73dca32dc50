"""What is written to a store comes back, in eV and Å, or an error says why not."""

import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

from forgefield.data.store import Store, StoreWriter
from forgefield.data.store.layout import columns
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.units import Units


@pytest.fixture
def structures():
    """Ragged sizes, every combination of labels, one periodic cell."""
    random = np.random.default_rng(1)
    return [
        Structure(
            numbers=np.array([6, 8, 1][:n]),
            positions=random.uniform(-50, 50, (n, 3)),
            cell=random.uniform(1, 9, (3, 3)) if n == 2 else np.zeros((3, 3)),
            pbc=np.array([n == 2, n == 2, False]),
            energy=None if n == 1 else -12345.678901234 * n,
            forces=None if n == 2 else random.normal(size=(n, 3)),
            virial=random.normal(size=(3, 3)) if n == 2 else None,
            energy_weight=2.5,
            source_index=100 + n,
        )
        for n in (3, 1, 2, 3)
    ]


def write(path, structures, units=Units("kJ/mol", "nm"), dtype="float64", has_virial=True, max_atoms=3):  # noqa: B008 Units is frozen
    with StoreWriter(
        path,
        n_structures=len(structures),
        max_atoms=max_atoms,
        units=units,
        dtype=dtype,
        has_virial=has_virial,
        attributes={"source": '["a.xyz"]', "source_sha256": "[]", "split": "train"},
    ) as writer:
        writer.append(structures[:1])
        writer.append(structures[1:])


@pytest.fixture
def path(tmp_path, structures):
    write(tmp_path / "train.h5", structures)
    return tmp_path / "train.h5"


@pytest.mark.parametrize("units", [Units("kJ/mol", "nm"), Units("eV", "angstrom"), Units("hartree", "bohr")])
def test_round_trip_in_any_units(tmp_path, structures, units):
    write(tmp_path / "train.h5", structures, units)
    with Store(tmp_path / "train.h5") as store:
        assert (len(store), store.max_atoms, store.has_virial) == (4, 3, True)
        assert store.elements == (1, 6, 8)
        assert store.units == units
        for found, expected in zip(store.read(slice(None)), structures, strict=True):
            np.testing.assert_array_equal(found.numbers, expected.numbers)
            np.testing.assert_array_equal(found.pbc, expected.pbc)
            assert found.source_index == expected.source_index
            for name in ("positions", "cell", "energy", "forces", "virial"):
                value = getattr(expected, name)
                if value is None:
                    assert getattr(found, name) is None
                else:
                    np.testing.assert_allclose(getattr(found, name), value, rtol=1e-14)


def test_the_file_is_in_its_own_units_and_padded_with_zeros(path, structures):
    with h5py.File(path) as file:
        assert json.loads(file.attrs["units"]) == {"energy": "kJ/mol", "length": "nm"}
        assert file.attrs["forgefield_format"] == b"4"
        assert file.attrs["created_by"].startswith(b"forgefield ")
        np.testing.assert_allclose(file["U"][0], structures[0].energy * 96.48533212331, rtol=1e-12)
        np.testing.assert_allclose(file["R"][1, 0], structures[1].positions[0] / 10, rtol=1e-14)
        np.testing.assert_allclose(file["F"][0], structures[0].forces * 964.8533212331, rtol=1e-12)
        np.testing.assert_allclose(file["virial"][2], structures[2].virial * 96.48533212331, rtol=1e-12)
        assert file["species"][:].tolist() == [[6, 8, 1], [6, 0, 0], [6, 8, 0], [6, 8, 1]]
        assert file["mask"][1].tolist() == [True, False, False]
        assert file["U_weight"][:].tolist() == [2.5, 0, 2.5, 2.5]
        assert file["F_weight"][:].tolist() == [1, 1, 0, 1]
        assert file["virial_weight"][:].tolist() == [0, 0, 1, 0]
        assert not file["R"][1, 1:].any()


def test_float32_keeps_total_energies_exact(tmp_path, structures):
    write(tmp_path / "train.h5", structures, dtype="float32")
    with h5py.File(tmp_path / "train.h5") as file:
        assert (file["R"].dtype, file["F"].dtype, file["U"].dtype) == (np.float32, np.float32, np.float64)
    with Store(tmp_path / "train.h5") as store:
        found = store.read([0])[0]
    assert found.positions.dtype == np.float64
    assert found.energy == pytest.approx(structures[0].energy, rel=1e-14)
    np.testing.assert_allclose(found.positions, structures[0].positions, rtol=2**-23)


@pytest.mark.parametrize("indices", [[3, 0, 2], [1, 1, 3], [-1], [], slice(3, 0, -2), np.array([2])])
def test_structures_come_in_the_order_asked_for(path, indices):
    with Store(path) as store:
        found = [s.source_index for s in store.read(indices)]
    assert found == np.array([103, 101, 102, 103])[indices].tolist()


def test_far_apart_rows_are_the_same_as_neighboring_ones(tmp_path):
    structures = [Structure(np.array([1]), np.full((1, 3), float(i)), energy=0.0) for i in range(300)]
    write(tmp_path / "train.h5", structures, has_virial=False)
    with Store(tmp_path / "train.h5") as store:
        assert not store.has_virial
        found = [s.positions[0, 0] for s in store.read([299, 5, 100])]
        np.testing.assert_allclose(found, [299, 5, 100], rtol=1e-14)
        with pytest.raises(IndexError):
            store.read([300])


def test_a_process_reads_only_the_bytes_of_its_rows(tmp_path):
    structures = [Structure(np.full(30, 1), np.full((30, 3), float(i)), energy=0.0) for i in range(400)]
    write(tmp_path / "train.h5", structures, has_virial=False, max_atoms=30)
    rows = np.random.default_rng(0).permutation(400)
    read = []
    for own in (rows, rows[:100]):
        with Store(tmp_path / "train.h5") as store:
            assert (store.rows_read, store.bytes_read) == (0, 0)
            for i in range(0, len(own), 10):
                store.read(own[i : i + 10])
            assert store.rows_read == len(own)
            read.append(store.bytes_read)
    assert read[0] == 4 * read[1]
    assert 0.95 < read[0] / (tmp_path / "train.h5").stat().st_size < 1


def test_an_open_file_is_read_and_stays_open(path):
    with h5py.File(path) as file:
        with Store(file) as store:
            assert store.path == path
            assert [s.source_index for s in store.read([2, 0])] == [102, 103]
        assert file["U"].shape == (4,)


def test_a_file_that_is_open_elsewhere_in_the_process_is_read(path):
    with h5py.File(path), Store(path) as store:
        assert len(store.read([0])) == 1


def test_a_closed_store_says_so(path):
    with Store(path) as store:
        pass
    with pytest.raises(ValueError, match="closed"):
        store.read([0])


def test_a_file_open_for_writing_shows_what_was_written(path):
    """Also before the file is flushed, and the count of bytes includes those of rows in between."""
    with h5py.File(path, "r+") as file, Store(file) as store:
        file["U"][1] = np.inf
        with pytest.raises(UserError, match="structure 1: numbers that are not finite"):
            store.read([0, 1])
        before = store.bytes_read
        store.read([3, 0])
        assert store.bytes_read == 3 * before


def test_a_compressed_copy_reads_the_same(path, tmp_path):
    copy = tmp_path / "copy.h5"
    with h5py.File(path) as source, h5py.File(copy, "w") as target:
        target.attrs.update(source.attrs)
        for key, values in source.items():
            target.create_dataset(key, data=values[:], chunks=(1, *values.shape[1:]), compression="gzip")
    with Store(path) as store, Store(copy) as compressed:
        expected, found = store.read([3, 0, 3]), compressed.read([3, 0, 3])
        assert compressed.elements == (1, 6, 8)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a.positions, b.positions)
        assert (a.energy, a.source_index) == (b.energy, b.source_index)


def test_an_incomplete_store_never_gets_its_name(tmp_path, structures):
    writer = StoreWriter(
        tmp_path / "train.h5",
        n_structures=5,
        max_atoms=3,
        units=Units(),
        dtype="float64",
        has_virial=True,
        attributes={},
    )
    with pytest.raises(ValueError, match="4 of 5 structures written"), writer:
        writer.append(structures)
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_written_where_room_cannot_be_reserved(tmp_path, structures, monkeypatch):
    """As on macOS."""
    monkeypatch.delattr(os, "posix_fallocate")
    write(tmp_path / "train.h5", structures)
    with Store(tmp_path / "train.h5") as store:
        assert store.read([0])[0].energy == pytest.approx(structures[0].energy)


def test_numbers_that_are_not_finite_are_not_written(tmp_path, structures):
    structures[2].positions[1, 0] = np.nan
    with pytest.raises(ValueError, match="numbers in R that are not finite"):
        write(tmp_path / "train.h5", structures)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_writing_keeps_the_old_store(path, structures):
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        write(path, [*structures[:1], *(1 / 0 for _ in [1])])
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


FILL = """
import sys
import numpy as np
from forgefield.data.store import StoreWriter
from forgefield.data.store.layout import columns
from forgefield.data.structures import Structure
from forgefield.errors import reported_errors
from forgefield.units import Units

random = np.random.default_rng(0)
layout = dict(max_atoms=99, units=Units(), dtype="float64", has_virial=False, attributes={})
with reported_errors(), StoreWriter(sys.argv[1], n_structures=400, **layout) as writer:
    for _ in range(4):
        writer.append([Structure(np.full(99, 1), random.normal(size=(99, 3)), energy=0.0) for _ in range(100)])
"""


def test_a_full_disk_is_a_machine_error_and_leaves_nothing(tmp_path):
    """On a file system of half a megabyte; where none can be mounted there is no such test."""
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    commands = 'mount -t tmpfs -o size=512k tmpfs "$1" && "$2" -c "$3" "$1/train.h5"; code=$?; ls -A "$1"; exit $code'
    arguments = ["unshare", "-rm", "sh", "-c", commands, "sh", tmp_path, sys.executable, FILL]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "train.h5: cannot be written (No space left on device)" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def open_error(path):
    with pytest.raises(UserError) as error, Store(path) as store:
        store.read(slice(None))
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    return message


def test_missing_file(tmp_path):
    assert "no such file" in open_error(tmp_path / "train.h5")


def test_not_hdf5(tmp_path):
    (tmp_path / "train.h5").write_text("energy,forces\n" * 100)
    assert "not an HDF5 file; make one with" in open_error(tmp_path / "train.h5")


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated(path, keep):
    os.truncate(path, int(path.stat().st_size * keep))
    expected = (
        "a damaged or truncated HDF5 file; make it again with `forgefield convert`" if keep else "not an HDF5 file"
    )
    assert open_error(path).startswith(f"{path}: {expected}")


@pytest.mark.parametrize("key", sorted(columns(3, has_virial=True).keys() - {"mask"}))
def test_a_flipped_bit_is_seen(path, key):
    """The last byte of structure 1, so that padding counts as well."""
    with h5py.File(path) as file:
        end = file[key].id.get_offset() + 2 * file[key].nbytes // 4
    content = bytearray(path.read_bytes())
    content[end - 1] ^= 1
    path.write_bytes(content)
    assert "structure 1: " in open_error(path)


def test_foreign_hdf5(tmp_path):
    with h5py.File(tmp_path / "train.h5", "w") as file:
        file["coordinates"] = np.zeros(3)
    assert "not a forgefield store" in open_error(tmp_path / "train.h5")


def spoil(path, change):
    with h5py.File(path, "r+") as file:
        change(file)
    return open_error(path)


def test_other_version(path):
    assert "store format 99" in spoil(path, lambda file: file.attrs.update(forgefield_format="99"))


def test_an_older_version_is_refused_with_the_command_to_run(path):
    """Format 3 padded all structures."""

    def change(file):
        file.attrs.update(forgefield_format="3", dataset="water")

    expected = "store format 3, this version reads 4; convert it again with `forgefield convert --dataset water`"
    assert spoil(path, change) == f"{path}: {expected}"


@pytest.mark.parametrize("key", ["units", "split", "source", "attributes_sha256"])
def test_changed_attributes_are_seen(path, key):
    def change(file):
        file.attrs[key] = file.attrs[key].replace(b"kJ", b"eV").replace(b"a", b"b").replace(b"/mol", b"")

    assert "attributes damaged, or changed after they were written" in spoil(path, change)


def test_attributes_of_the_users_own_may_be_added(path):
    with h5py.File(path, "r+") as file:
        file.attrs["note"] = "mine"
    with Store(path) as store:
        assert store.attributes["note"] == "mine"


def test_unknown_units(path):
    assert "unknown energy unit 'kcal/mole'" in spoil(
        path, lambda file: file.attrs.update(units='{"energy": "kcal/mole", "length": "nm"}')
    )


def test_no_units(path):
    assert "units" in spoil(path, lambda file: file.attrs.pop("units"))


def test_absent_dataset(path):
    assert "dataset F has shape None" in spoil(path, lambda file: file.pop("F"))


def test_unequal_lengths_are_named_also_those_of_a_users_own_dataset(path):
    def change(file):
        energies = file["U"][:-1]
        del file["U"]
        file["U"] = energies
        file["note"] = np.zeros((5, 2))

    message = spoil(path, change)
    assert "datasets of unequal length (U: 3; note: 5; F, F_weight, R, " in message
    assert "virial_weight: 4)" in message


def test_energies_that_are_not_finite(path):
    assert "structure 2: numbers that are not finite" in spoil(path, lambda file: file["U"].__setitem__(2, np.nan))


def test_forces_that_are_not_finite(path):
    assert "structure 3: numbers that are not finite" in spoil(
        path, lambda file: file["F"].__setitem__((3, 1, 2), np.inf)
    )


def test_atom_counts_beyond_the_padding(path):
    assert "structure 0: n_atoms does not fit R" in spoil(path, lambda file: file["n_atoms"].__setitem__(0, 4))
