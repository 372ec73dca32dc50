"""Structures of different sizes are stored without padding; other programs see them padded, and both hold the same."""

import h5py
import numpy as np
import pytest

from forgefield.data.store import Store, StoreWriter
from forgefield.data.store.packed import FIRST, PACKED, is_worth_packing
from forgefield.data.store.validation import validate_store
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.units import Units

PER_STRUCTURE = 8 * (1 + 9 + 3 + 2) + 3 + 4  # bytes: energy, cell, weights, source_index, checksum, pbc, n_atoms


def structures_of(sizes):
    random = np.random.default_rng(0)
    return [
        Structure(
            numbers=random.integers(1, 119, n),
            positions=random.normal(size=(n, 3)),
            energy=random.normal(),
            forces=None if i % 7 == 3 else random.normal(size=(n, 3)),
            source_index=i,
        )
        for i, n in enumerate(sizes)
    ]


def write(path, structures, packed, dtype="float64"):
    sizes = np.array([len(s) for s in structures])
    layout = {"n_structures": len(sizes), "max_atoms": int(sizes.max()), "dtype": dtype, "has_virial": False}
    packed_sizes = sizes if packed else None
    with StoreWriter(path, units=Units("kJ/mol", "nm"), attributes={}, packed_sizes=packed_sizes, **layout) as writer:
        for start in range(0, len(sizes), 50):
            writer.append(structures[start : start + 50])
    return path


@pytest.fixture(params=[("float64", 5), ("float32", 5), ("float64", 301), ("float32", 301), ("float32", 302)], ids=str)
def both(request, tmp_path):
    """The same structures packed and padded; rows of many atoms are summed in another way than those of few."""
    dtype, most = request.param
    structures = structures_of(np.sort(np.random.default_rng(1).integers(1, most + 1, 120)))
    return [write(tmp_path / f"{packed}.h5", structures, packed, dtype) for packed in (True, False)]


def test_other_programs_see_the_same_datasets(both):
    with h5py.File(both[0]) as packed, h5py.File(both[1]) as padded:
        assert packed.keys() == padded.keys() | {PACKED}
        for key, dataset in padded.items():
            assert packed[key].dtype == dataset.dtype
            np.testing.assert_array_equal(packed[key][:], dataset[:], err_msg=key)
        assert packed["R"][7, :2].tolist() == padded["R"][7, :2].tolist()


def test_a_store_reads_the_same_in_any_order(both):
    rows = np.random.default_rng(2).permutation(120)[:40]
    with Store(both[0]) as packed, Store(both[1]) as padded:
        assert (len(packed), packed.max_atoms, packed.elements) == (len(padded), padded.max_atoms, padded.elements)
        for indices in (rows, slice(None), [3], []):
            for found, expected in zip(packed.read(indices), padded.read(indices), strict=True):
                for name in ("numbers", "positions", "energy", "forces", "source_index"):
                    np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_structures_come_in_the_order_of_their_source(tmp_path):
    sizes = [5, 2, 9, 2]
    with Store(write(tmp_path / "a.h5", sorted(structures_of(sizes), key=len), packed=True)) as store:
        found = store.read(store.in_source_order)
    assert [s.source_index for s in found] == [0, 1, 2, 3]
    assert [len(s) for s in found] == sizes


def test_both_are_valid(both):
    packed, padded = (validate_store(path) for path in both)
    assert packed | {"path": 0} == padded | {"path": 0}


def test_a_padded_copy_by_another_program_is_a_store_too(both, tmp_path):
    with h5py.File(both[0]) as source, h5py.File(tmp_path / "copy.h5", "w") as target:
        target.attrs.update(source.attrs)
        for key in source.keys() - {PACKED}:
            target[key] = source[key][:]
    assert validate_store(tmp_path / "copy.h5")["structures"] == 120


def test_an_open_or_compressed_file_is_read_by_hdf5(both):
    with h5py.File(both[0], "r+") as file:
        values = file[PACKED]["R"][:]
        del file[PACKED]["R"]
        file[PACKED].create_dataset("R", data=values, chunks=(7, 3), compression="gzip")
        with Store(file) as compressed, Store(both[1]) as padded:
            for found, expected in zip(compressed.read([5, 100, 5]), padded.read([5, 100, 5]), strict=True):
                np.testing.assert_array_equal(found.positions, expected.positions)


def test_sizes_from_1_to_300_take_no_more_than_they_are(tmp_path):
    sizes = np.sort(np.random.default_rng(0).integers(1, 301, 1000))
    path = write(tmp_path / "a.h5", structures_of(sizes), packed=True)
    content = int(sizes.sum()) * (24 + 24 + 1) + len(sizes) * PER_STRUCTURE
    assert 1 < path.stat().st_size / content < 1.05
    with Store(path) as store:
        store.read(np.random.default_rng(0).permutation(1000))
        assert content <= store.bytes_read < path.stat().st_size


@pytest.mark.parametrize(("sizes", "worth"), [([9, 9, 9], False), ([8, 9, 9], False), ([1, 2, 9], True)])
def test_padding_of_a_quarter_is_worth_it(sizes, worth):
    assert is_worth_packing(np.array(sizes)) == worth


def test_other_sizes_than_announced_are_refused(tmp_path):
    layout = {"n_structures": 2, "max_atoms": 3, "dtype": "float64", "has_virial": False, "attributes": {}}
    writer = StoreWriter(tmp_path / "a.h5", units=Units(), packed_sizes=np.array([1, 3]), **layout)
    with pytest.raises(ValueError, match="other sizes than packed_sizes"), writer:
        writer.append(structures_of([1, 2]))
    padded = StoreWriter(tmp_path / "a.h5", units=Units(), **layout)
    with pytest.raises(ValueError, match="a structure of 4 atoms; max_atoms is 3"), padded:
        padded.append(structures_of([1, 4]))
    for sizes in ([1, 2], [1, 3, 3]):
        with pytest.raises(ValueError, match="packed_sizes are not those of 2 structures of up to 3"):
            StoreWriter(tmp_path / "a.h5", units=Units(), packed_sizes=np.array(sizes), **layout)


@pytest.mark.parametrize("key", ["R", "F", "species", FIRST])
def test_what_was_changed_is_seen_at_the_rows_it_is_in(tmp_path, key):
    path = write(tmp_path / "a.h5", structures_of([1, 2, 3, 3]), packed=True)
    with h5py.File(path, "r+") as file:
        file[PACKED][key][1] = file[PACKED][key][1] + 1
    with Store(path) as store:
        assert len(store.read([0, 2, 3])) == 3
        with pytest.raises(UserError, match="structure 1: damaged"):
            store.read([1])


def test_validation_sees_a_mask_with_holes_and_structures_out_of_place(tmp_path):
    path = write(tmp_path / "a.h5", structures_of([1, 2, 3, 3]), packed=True)
    with h5py.File(path, "r+") as file:
        file[PACKED]["mask"][4] = False
    with pytest.raises(UserError, match="structure 2: mask does not fit n_atoms"):
        validate_store(path)
    with h5py.File(path, "r+") as file:
        file[PACKED]["mask"][4] = True
        file[PACKED][FIRST][2] = 9
    with pytest.raises(UserError, match="structure 2: damaged"):
        validate_store(path)
