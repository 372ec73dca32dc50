"""Which split is proposed for which data; each kind is converted so, as the proposal says."""

import ase
import ase.io
import pytest

from forgefield.config import load_config
from forgefield.data.convert import convert_dataset
from forgefield.data.inspection import dataset_entry, inspect_files, suitable_split

# kinds of data -> the elements of each frame, the split for them, and what is said of it
KINDS = {
    "one trajectory": (["OH"] * 20, {"method": "blocks"}, "of the same atoms, as in one trajectory"),
    "molecules by size": (["H" * (1 + i) for i in range(20)], {"method": "random"}, "they are no trajectory"),
    "trajectories": (
        ["H" * (1 + i // 4) for i in range(48)],
        {"method": "group", "by": "composition"},
        "no molecule is in two parts",
    ),
    "two trajectories": (
        ["OH"] * 20 + ["OHH"] * 20,
        {"method": "random", "stratify": True},
        "test errors will look too small",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_split_fits_the_data(tmp_path, kind):
    elements, split, why = KINDS[kind]
    frames = [
        ase.Atoms(list(symbols), [(1.5 * k, 0, 0.01 * i) for k in range(len(symbols))])
        for i, symbols in enumerate(elements)
    ]
    for atoms in frames:
        atoms.info["REF_energy"] = -10.0 * len(atoms)
    path = tmp_path / "frames.extxyz"
    ase.io.write(path, frames)
    found = inspect_files([path])
    assert suitable_split(found.order)[0] == split
    assert why in suitable_split(found.order)[1]
    entry = dataset_entry(found, [str(path)])
    assert entry.get("split", {"method": "blocks"}) == split
    convert_dataset("data", load_config({"datasets": {"data": entry}}).datasets["data"], tmp_path / "out")
    assert {path.stem for path in (tmp_path / "out").glob("*.h5")} == {"train", "valid", "test"}
