"""From files to the three stores and the report: all of it, or nothing."""

import json

import ase
import ase.io
import h5py
import numpy as np
import pytest

from forgefield.config.dataset import DatasetConfig
from forgefield.data import consistency
from forgefield.data.convert import convert_dataset
from forgefield.data.store import Store
from forgefield.errors import UserError
from forgefield.files import sha256_of
from forgefield.statistics.reference import iter_structures

RESULTS = ["conversion.json", "test.h5", "train.h5", "valid.h5"]


def molecule(i, symbols="OHH"):
    random = np.random.default_rng(i)
    atoms = ase.Atoms(symbols, np.eye(len(symbols), 3) * 0.8 + random.uniform(0, 0.1, (len(symbols), 3)))
    atoms.info["dft_energy"] = -10.0 * len(symbols) - i
    atoms.arrays["dft_forces"] = random.normal(size=(len(symbols), 3))
    return atoms


@pytest.fixture
def frames():
    """Twenty frames of water and carbon dioxide, with an isolated atom in third place."""
    frames = [molecule(i, "OHH" if i % 3 else "OC") for i in range(19)]
    frames.insert(2, ase.Atoms("O", info={"config_type": "IsolatedAtom", "dft_energy": -9.0}))
    return frames


@pytest.fixture
def source(tmp_path, frames):
    ase.io.write(tmp_path / "a.xyz", frames)
    return tmp_path / "a.xyz"


@pytest.fixture
def output(tmp_path):
    return tmp_path / "results" / "datasets" / "water"


def convert(source, output, **config):
    return convert_dataset("water", DatasetConfig(source=str(source), **config), output)


def names_in(directory):
    return sorted(path.name for path in directory.iterdir())


def test_stores_hold_the_frames_in_order(source, output, frames):
    convert(source, output)
    assert names_in(output) == RESULTS
    assert names_in(output.parent) == ["water"]
    structures = []
    for part, n in {"train": 15, "valid": 2, "test": 2}.items():
        with Store(output / f"{part}.h5") as store:
            assert len(store) == n
            assert (store.units.energy, store.units.length) == ("kJ/mol", "nm")
            assert store.attributes["split"] == part
            assert json.loads(store.attributes["source"]) == [str(source)]
            assert json.loads(store.attributes["source_sha256"]) == [sha256_of(source)]
            assert store.places.words([7, 3]) == f"{source}, frames 3, 7"
            assert not store.has_virial
            structures += store.read(slice(None))
    expected = [i for i in range(20) if i != 2]
    assert [s.source_index for s in structures] == expected
    for s in structures:
        atoms = frames[s.source_index]
        assert s.numbers.tolist() == atoms.numbers.tolist()
        assert s.energy == pytest.approx(atoms.info["dft_energy"], rel=1e-7)
        np.testing.assert_allclose(s.forces, atoms.arrays["dft_forces"], atol=1e-7)


def test_report(source, output):
    report = convert(source, output)
    assert report == json.loads((output / "conversion.json").read_text())
    assert report["dataset"] == "water"
    (file,) = report["sources"]
    assert (file["path"], file["format"], file["frames"], file["first_frame"]) == (str(source), "extxyz", 20, 0)
    assert file["units"] == {
        "energy": "eV",
        "length": "angstrom",
        "forces": "eV/angstrom",
        "stress": "eV/angstrom^3",
        "virial": "eV",
    }
    assert file["factors_to_store"]["energy"] == pytest.approx(96.48533212)
    assert file["factors_to_store"]["length"] == 0.1
    assert file["factors_to_store"]["forces"] == pytest.approx(964.8533212)
    assert report["store"]["units"]["forces"] == "kJ/mol/nm"
    assert report["store"] | {"units": 0} == {"units": 0, "dtype": "float64"}
    assert report["keys"] == {"energy": "dft_energy", "forces": "dft_forces"}
    assert report["keys_not_read"] == ["config_type"]
    assert report["frames"] == {"read": 20, "usable": 19, "rejected": 1, "in_no_part": 0}
    assert report["labels"] == {"energy": 19, "forces": 19, "virial": 0}
    assert report["elements"] == ["H", "C", "O"]
    assert report["atoms"] == {"least": 2, "most": 3, "all": 50}
    assert report["split"]["train"] == {"structures": 15, "frames": "0-1, 3-15"}
    assert report["split"]["test"] == {"structures": 2, "frames": "18-19"}
    assert report["rejected"] == [{"file": str(source), "frame": 2, "source_index": 2, "reason": "isolated atom"}]
    assert report["rejected_for"] == {"isolated atom": 1}
    assert report["energies_against_forces"] is None
    assert report["warnings"] == []


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_other_store_units_and_types(source, output, frames, dtype):
    convert(source, output, store={"units": {"energy": "eV", "length": "angstrom"}, "dtype": dtype})
    with h5py.File(output / "train.h5") as file:
        assert file["R"].dtype == dtype
        assert file["U"].dtype == "float64"
        np.testing.assert_allclose(file["R"][0, :2], frames[0].positions, atol=1e-6)
        assert file["U"][0] == pytest.approx(frames[0].info["dft_energy"], rel=1e-7)


def test_random_split_is_reproducible(source, output, tmp_path):
    first, again, other = (
        convert(source, tmp_path / str(i), split={"method": "random", "seed": seed})["split"]["test"]
        for i, seed in enumerate([1, 1, 2])
    )
    assert first == again != other


def test_counts_leave_frames_over(source, output):
    report = convert(source, output, split={"train": 10, "valid": 3, "test": 4})
    assert report["frames"]["in_no_part"] == 2


def test_split_from_files(tmp_path, output, frames):
    files = {"train": ["a.xyz", "b.xyz"], "valid": ["c.xyz"], "test": ["d.xyz"]}
    for i, name in enumerate("abcd"):
        ase.io.write(tmp_path / f"{name}.xyz", frames[5 * i : 5 * i + 5])
    split = {part: [str(tmp_path / name) for name in names] for part, names in files.items()}
    report = convert_dataset("water", DatasetConfig(split={"method": "files"} | split), output)
    assert [report["split"][part]["frames"] for part in files] == ["0-1, 3-9", "10-14", "15-19"]
    assert [file["first_frame"] for file in report["sources"]] == [0, 5, 10, 15]
    with Store(output / "test.h5") as store:
        assert store.read([0])[0].energy == pytest.approx(frames[15].info["dft_energy"], rel=1e-7)


def test_one_file_in_two_parts_is_refused(source, tmp_path, output):
    split = {"method": "files", "train": str(source), "valid": str(tmp_path / "*.xyz"), "test": str(source)}
    with pytest.raises(UserError, match=r"a.xyz: given as train_path \(datasets\.water\.split\.train\) and as val"):
        convert_dataset("water", DatasetConfig(split=split), output)


def test_several_sources(tmp_path, output, frames):
    ase.io.write(tmp_path / "a.xyz", frames[:8])
    ase.io.write(tmp_path / "b.traj", frames[8:])
    report = convert_dataset("water", DatasetConfig(source=[str(tmp_path / "a.xyz"), str(tmp_path / "b.traj")]), output)
    assert [file["format"] for file in report["sources"]] == ["extxyz", "traj"]
    assert report["frames"]["usable"] == 19


def test_missing_labels_are_counted(source, output, frames, capsys):
    del frames[4].info["dft_energy"]
    del frames[5].arrays["dft_forces"]
    ase.io.write(source, frames)
    report = convert(source, output)
    assert report["labels"] == {"energy": 18, "forces": 18, "virial": 0}
    assert report["warnings"] == ["1 of 19 frames have no energy", "1 of 19 frames have no forces"]
    assert capsys.readouterr().err.splitlines() == [f"warning: dataset water: {line}" for line in report["warnings"]]
    with h5py.File(output / "train.h5") as file:
        assert file["source_index"][3:5].tolist() == [4, 5]
        assert file["U_weight"][3:5].tolist() == [0, 1]
        assert file["F_weight"][3:5].tolist() == [1, 0]


def test_virials_are_stored_for_all_parts_where_some_frame_has_one(source, output, frames):
    frames[0].cell, frames[0].pbc = np.eye(3) * 9, True
    frames[0].info["virial"] = np.eye(3)
    ase.io.write(source, frames)
    convert(source, output)
    for part, weights in {"train": [1] + [0] * 14, "test": [0, 0]}.items():
        with h5py.File(output / f"{part}.h5") as file:
            assert file["virial_weight"][:].tolist() == weights
    with Store(output / "train.h5") as store:
        np.testing.assert_allclose(store.read([0])[0].virial, np.eye(3), rtol=1e-12)


def test_kcal_read_as_ev_is_refused_with_the_evidence(shared_data, output, capsys):
    path = shared_data / "molecules/ethanol_ccsdt_reduced_100_kcal.xyz"
    with pytest.raises(
        UserError,
        match=r"kcal.xyz: energies .* 23.2 times .* kcal/mol fits.*; if the numbers are right, set datasets.water.tr",
    ):
        convert(path, output)
    assert not any(output.parent.iterdir())
    report = convert(path, output, trust_units=True)
    (warning,) = report["warnings"]
    assert "23.2 times" in warning
    assert capsys.readouterr().err == f"warning: dataset water: {warning}\n"


def test_a_small_file_in_another_unit_is_found_beside_a_large_one(source, tmp_path, output, frames):
    wrong = [atoms.copy() for atoms in frames[3:]] * 2
    for atoms in wrong:
        atoms.arrays["dft_forces"] = atoms.arrays["dft_forces"] * 23.06
    ase.io.write(tmp_path / "b.xyz", wrong)
    ase.io.write(source, frames * 5)
    config = DatasetConfig(source=[str(source), str(tmp_path / "b.xyz")])
    with pytest.raises(
        UserError, match=r"^datasets.water: \S*b.xyz: energies look too large for eV: the forces' RMS is"
    ):
        convert_dataset("water", config, output)


def test_forces_that_contradict_energies_are_refused_with_the_units_that_fit(shared_data, output, monkeypatch):
    path, units = shared_data / "npz/md17_ethanol_2000.npz", {"energy": "kcal/mol", "length": "angstrom"}
    with pytest.raises(UserError, match=r"2000.npz: .* by 0.0434.* or units: {energy: kcal/mol, forces: kcal/mol/angs"):
        convert(path, output, units=units | {"forces": "eV/angstrom"})
    report = convert(path, output, units="md17")
    assert report["warnings"] == []
    assert report["energies_against_forces"]["slope"] == pytest.approx(1, abs=0.02)
    monkeypatch.setattr(consistency, "AT_ONCE", 50)  # found in the middle of a file, and told all the same
    with pytest.raises(UserError, match=r"2000.npz: energies do not fit the forces: over 50 pairs") as refusal:
        convert(path, output, units=units | {"forces": "eV/angstrom"})
    assert str(refusal.value).count("energies do not fit") == 1


def test_kcal_read_as_kcal_does_not(shared_data, output):
    report = convert(
        shared_data / "md22/md22_Ac-Ala3-NHMe_5frames.xyz",
        output,
        units={"energy": "kcal/mol"},
        split={"train": 3, "valid": 0.2, "test": 0.2},
    )
    assert report["warnings"] == []
    assert report["keys"] == {"energy": "Energy", "forces": "forces"}


def nan_forces(frames):
    frames[17].arrays["dft_forces"][1, 2] = np.nan


def infinite_energy(frames):
    frames[18].info["dft_energy"] = np.inf


def one_point(frames):
    frames[4].positions[1] = frames[4].positions[0]


def no_weights(frames):
    for atoms in frames:
        atoms.info["config_weight"] = 0.0


def no_weights_but_of_virials(frames):
    for atoms in frames:
        atoms.info |= {"config_energy_weight": 0.0, "config_forces_weight": 0.0}


BAD_FRAMES = {
    "all weights 0": (no_weights, {}, r"train: all weights of its frames are 0 \(keys config_weight\)"),
    "weights of absent labels": (no_weights_but_of_virials, {}, r"train: all weights of its frames are 0"),
    "NaN force": (nan_forces, {}, r"a.xyz, frame 17: forces NaN or infinite at atom 1"),
    "infinite energy": (infinite_energy, {}, r"a.xyz, frame 18: energy NaN or infinite"),
    "two atoms on one point": (one_point, {}, r"a.xyz, frame 4: atoms 0 and 1 are on one point"),
    "key absent": (None, {"keys": {"energy": "energy_dft"}}, r"keys.energy: 'energy_dft'; did you mean 'dft_energy'\?"),
    "split too large": (None, {"split": {"train": 400, "valid": 50, "test": 50}}, "but 19 frames are usable"),
    "part empty": (None, {"split": {"train": 0.9, "valid": 0.05, "test": 0.01}}, "leaves test without a frame"),
}


@pytest.mark.parametrize("earlier", [False, True], ids=["first time", "old results there"])
@pytest.mark.parametrize("case", BAD_FRAMES)
def test_bad_input_changes_nothing(source, output, frames, case, earlier):
    spoil, config, match = BAD_FRAMES[case]
    if earlier:
        convert(source, output)
        before = {path: path.read_bytes() for path in output.iterdir()}
    if spoil:
        spoil(frames)
        ase.io.write(source, frames)
    with pytest.raises(UserError, match=match) as error:
        convert(source, output, **config)
    assert "\n" not in str(error.value)
    if earlier:
        assert {path: path.read_bytes() for path in output.iterdir()} == before
        assert names_in(output.parent) == ["water"]
    else:
        assert names_in(output.parent) == []


def test_missing_and_empty_files(tmp_path, output):
    with pytest.raises(UserError, match=r"nothing.xyz: no such file"):
        convert(tmp_path / "nothing.xyz", output)
    (tmp_path / "a.xyz").touch()
    with pytest.raises(UserError, match=r"a.xyz: empty file"):
        convert(tmp_path / "a.xyz", output)
    assert not output.parent.exists()


def test_nothing_but_isolated_atoms(shared_data, output):
    with pytest.raises(UserError, match=r"no usable frame: all 4 are left out \(4 isolated atom\)"):
        convert(shared_data / "molecules/3bpa_iso_atoms.xyz", output)


def test_converting_again_replaces_the_results_and_leaves_other_files(source, output, frames):
    convert(source, output)
    (output / "notes.txt").write_text("mine")
    ase.io.write(source, frames[:10])
    convert(source, output)
    assert names_in(output) == sorted([*RESULTS, "notes.txt"])
    with Store(output / "train.h5") as store:
        assert len(store) == 7


def test_the_same_input_gives_the_same_bytes(source, output, tmp_path):
    convert(source, output)
    convert(source, tmp_path / "again")
    for name in RESULTS:
        assert (output / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_real_ragged_set(shared_data, output):
    path = shared_data / "molecules/solvent_xtb_train_200.xyz"
    report = convert(path, output, split={"method": "random", "seed": 1})
    assert report["keys"] == {"energy": "energy_xtb", "forces": "forces_xtb"}
    assert report["frames"] == {"read": 203, "usable": 200, "rejected": 3, "in_no_part": 0}
    assert report["atoms"]["least"] == 8
    assert report["atoms"]["most"] == 85
    atoms = ase.io.read(path, ":")
    with Store(output / "test.h5") as store:
        assert store.elements == (1, 6, 8)
        sizes = [len(s) for s in store.read(slice(None))]
        assert sizes == sorted(sizes)  # without padding
        in_order = [s.source_index for s in iter_structures(store)]
        assert len(in_order) == len(store)
        assert in_order == sorted(in_order)
        for s in store.read(range(len(store))):
            expected = atoms[s.source_index]
            np.testing.assert_allclose(s.positions, expected.positions, rtol=1e-12)
            np.testing.assert_allclose(s.forces, expected.arrays["forces_xtb"], rtol=1e-12)
            assert s.energy == pytest.approx(expected.info["energy_xtb"], rel=1e-13)


def test_a_split_is_reproduced_from_its_report(source, output, tmp_path):
    convert(source, output, split={"method": "random", "seed": 3})
    split = {"method": "frames", "file": str(output / "conversion.json")}
    convert(source, tmp_path / "again", split=split)
    for part in ("train", "valid", "test"):
        with Store(output / f"{part}.h5") as first, Store(tmp_path / f"again/{part}.h5") as again:
            assert [s.source_index for s in first.read(slice(None))] == [
                s.source_index for s in again.read(slice(None))
            ]


def test_split_by_a_key_of_the_source(source, output, frames):
    for i, atoms in enumerate(frames):
        atoms.info["molecule"] = f"number {i // 4}"
    ase.io.write(source, frames)
    report = convert(source, output, split={"method": "group", "by": "molecule"})
    assert report["split"]["by"] == "molecule"
    assert "molecule" not in report["keys_not_read"]
    groups = []
    for part in ("train", "valid", "test"):
        with Store(output / f"{part}.h5") as store:
            groups.append({s.source_index // 4 for s in store.read(slice(None))})
    assert sum(map(len, groups)) == 5 == len(set.union(*groups))


@pytest.mark.parametrize("by", ["composition", "file"])
def test_split_by_what_every_frame_has(tmp_path, output, by):
    for i, symbols in enumerate(["OHH", "OC", "CHHHH"]):
        ase.io.write(tmp_path / f"{i}.xyz", [molecule(10 * i + j, symbols) for j in range(4)])
    report = convert(tmp_path / "*.xyz", output, split={"method": "group", "by": by})
    assert [report["split"][part]["structures"] for part in ("train", "valid", "test")] == [4, 4, 4]


def test_split_by_a_key_that_is_not_there(source, output):
    with pytest.raises(
        UserError, match=r"a.xyz, frame 0: no colour, which is datasets.water.split.by; choose composition, file or a"
    ):
        convert(source, output, split={"method": "group", "by": "colour"})


def test_stratified_split(source, output):
    report = convert(
        source, output, split={"method": "random", "stratify": True, "train": 0.6, "valid": 0.2, "test": 0.2}
    )
    assert report["split"]["stratify"] is True
    with Store(output / "test.h5") as store:
        assert {len(s) for s in store.read(slice(None))} == {2, 3}


def test_isolated_atoms_become_energies_of_elements(source, output, frames):
    frames += [ase.Atoms("O", info={"config_type": "IsolatedAtom", "dft_energy": e}) for e in (-9.5, -9.2)]
    frames += [ase.Atoms("H", info={"dft_energy": -1.5}), ase.Atoms("C", info={"dft_energy": np.nan})]
    frames += [ase.Atoms("X", info={"dft_energy": 0.0})]
    ase.io.write(source, frames)
    report = convert(source, output)
    assert report["isolated_atoms"] == {"unit": "eV", "energies": {"H": -1.5, "O": -9.5}}
    assert report["warnings"] == [
        "isolated atoms with several energies: O; the lowest is taken",
        "isolated atoms with energies that are NaN or infinite: C; they are not used",
    ]
    with Store(output / "train.h5") as store:
        assert json.loads(store.attributes["isolated_atoms"]) == report["isolated_atoms"]


def test_repeated_frames_and_leaks_are_reported(source, output, frames):
    frames[19], frames[7] = frames[4], frames[5]
    ase.io.write(source, frames)
    report = convert(source, output)
    assert report["repeated_frames"]["groups"] == [[4, 19], [5, 7]]
    assert report["repeated_frames"]["between_parts"] == {"train and test": {"count": 1, "frames": [[4, 19]]}}
    assert "in two parts of the split: 1 in train and test (frames 4 and 19)" in report["warnings"][0]


def test_a_file_without_a_label_that_other_files_have_is_named_whole(tmp_path, output, frames):
    ase.io.write(tmp_path / "a.xyz", frames[3:9])
    for atoms in frames[9:]:
        atoms.info["etot"] = atoms.info.pop("dft_energy")
    ase.io.write(tmp_path / "b.xyz", frames[9:])
    config = DatasetConfig(source=[str(tmp_path / "a.xyz"), str(tmp_path / "b.xyz")], keys={"energy": "dft_energy"})
    expected = r"b.xyz: no frame in it has energy, as other files have by the key dft_energy. Keys not read: etot"
    with pytest.raises(UserError, match=expected):
        convert_dataset("water", config, output, complete=True)
    warnings = convert_dataset("water", config, output)["warnings"]
    assert warnings[0] == "11 of 17 frames have no energy"
    assert expected in warnings[1]


def test_a_file_of_which_no_frame_has_a_label_is_refused_with_the_keys_there(tmp_path, output, frames):
    for name in "ac":
        ase.io.write(tmp_path / f"{name}.xyz", frames)
    for atoms in frames:
        atoms.info["xtb_energy"] = atoms.info.pop("dft_energy")
        atoms.arrays.pop("dft_forces", None)
    ase.io.write(tmp_path / "b.xyz", frames)
    config = DatasetConfig(source=str(tmp_path / "*.xyz"), keys={"energy": "dft_energy"})
    expected = r"b.xyz: no frame in it has a label: others have dft_energy, dft_forces, this file has xtb_energy; give"
    with pytest.raises(UserError, match=expected):
        convert_dataset("water", config, output)


def test_keys_in_messages_are_those_of_the_configuration(tmp_path, output, frames):
    ase.io.write(tmp_path / "a.xyz", [ase.Atoms("OH", [[0, 0, 0], [0, 0, 1]], info={"value": 1.0}) for _ in range(9)])
    with pytest.raises(UserError, match=r"set datasets\.water\.keys\.energy and datasets\.water\.keys\.forces\. Keys"):
        convert(tmp_path / "a.xyz", output)
