"""`forgefield validate`: what is wrong with a store, also where checksums are right."""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from forgefield.data.store import StoreWriter
from forgefield.data.store.checksums import RowChecksums
from forgefield.data.store.layout import columns
from forgefield.data.store.validation import validate_store
from forgefield.data.structures import Structure
from forgefield.errors import UserError
from forgefield.units import Units


@pytest.fixture
def path(tmp_path):
    random = np.random.default_rng(0)
    structures = [
        Structure(np.array([6, 8, 1][:n]), random.normal(size=(n, 3)), energy=-float(n), source_index=n)
        for n in (3, 1, 2, 3)
    ]
    layout = {"n_structures": 4, "max_atoms": 3, "dtype": "float64", "has_virial": False}
    with StoreWriter(tmp_path / "a.h5", units=Units("kJ/mol", "nm"), attributes={"dataset": "x"}, **layout) as writer:
        writer.append(structures)
    return tmp_path / "a.h5"


def spoil(path, key, place, value):
    """A number changed by someone who knows of the checksums."""
    with h5py.File(path, "r+") as file:
        file[key][place] = value
        content = {k: file[k][:] for k in columns(3, has_virial=False) if k not in ("mask", "checksum")}
        sums = RowChecksums({k: (values.shape[1:], values.dtype) for k, values in content.items()})
        file["checksum"][:] = sums(np.arange(4), content)


def test_a_whole_file_is_described(path):
    report = validate_store(path)
    assert report["structures"] == 4
    assert report["atoms"] == {"least": 1, "most": 3, "all": 9}
    assert report["elements"] == ["H", "C", "O"]
    assert report["labels"] == {"energy": 4, "forces": 0, "virial": 0}
    assert (report["units"]["energy"], report["units"]["length"]) == ("kJ/mol", "nm")


@pytest.mark.parametrize(
    ("key", "place", "value", "problem"),
    [
        ("n_atoms", 1, 0, "n_atoms does not fit R"),
        ("mask", (1, 1), True, "mask does not fit n_atoms"),
        ("species", (1, 0), 119, "species of no element"),
        ("species", (1, 1), 6, "species of no element"),
        ("F", (1, 2, 0), 1.0, "numbers in the padding"),
        ("R", (1, 0, 0), np.nan, "numbers that are not finite"),
        ("U", 1, np.inf, "numbers that are not finite"),
        ("U_weight", 1, -1.0, "a negative weight"),
    ],
)
def test_what_makes_no_sense_is_named(path, key, place, value, problem):
    spoil(path, key, place, value)
    with pytest.raises(UserError, match=rf"a\.h5: structure 1: {problem}"):
        validate_store(path)


def test_a_dataset_of_another_type(path):
    with h5py.File(path, "r+") as file:
        energies = file["U"][:].astype(np.float32)
        del file["U"]
        file["U"] = energies
    with pytest.raises(UserError, match="dataset U is of type float32, expected float64"):
        validate_store(path)


def run(*words):
    program = Path(sys.executable).with_name("forgefield")
    return subprocess.run([program, "validate", *words], capture_output=True, text=True)


def test_the_command_tells_of_each_file(path, tmp_path):
    (tmp_path / "b.h5").write_bytes(path.read_bytes()[:-100])
    done = run(path, tmp_path / "b.h5")
    assert done.returncode == 2
    assert done.stdout == f"{path}: whole; 4 structures of 1 to 3 atoms (H C O), 4 with energy, in kJ/mol and nm\n"
    assert done.stderr.startswith(f"error: {tmp_path / 'b.h5'}: a damaged or truncated HDF5 file")
    assert len(done.stderr.splitlines()) == 1


def test_json_for_programs(path, tmp_path):
    done = run(path, tmp_path / "absent.h5", "--json")
    whole, absent = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (2, "")
    assert whole == validate_store(path)
    assert "no such file" in absent["error"]
