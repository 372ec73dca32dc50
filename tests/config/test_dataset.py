import pytest

from forgefield.config import DatasetConfig
from forgefield.config.dataset import Download
from forgefield.units import Units


def test_a_source_is_enough():
    config = DatasetConfig(source="a.npz")
    assert config.source == ["a.npz"]
    assert config.store.units.as_units() == Units("kJ/mol", "nm")
    assert config.split.shares == {"train": 0.8, "valid": 0.1, "test": 0.1}


def test_downloads_stand_beside_paths_and_survive_json():
    download = {"url": "https://a.org/b.npz", "sha256": "0A" * 32}
    config = DatasetConfig(source=["a.npz", download])
    assert config.source == ["a.npz", Download(url=download["url"], sha256="0a" * 32)]
    assert DatasetConfig(source=download).source == config.source[1:]
    assert DatasetConfig.model_validate(config.model_dump(mode="json")) == config


@pytest.mark.parametrize(("given", "read"), [("400", 400), ("1e-1", 0.1), (400.0, 400), (2, 2), (0.999, 0.999)])
def test_counts_and_fractions(given, read):
    split = DatasetConfig(source="a", split={"train": given, "valid": 2, "test": 2}).split
    assert split.train == read
    assert type(split.train) is type(read)


def test_counts_and_fractions_mix(load):
    split = load("datasets.ethanol.split={train: 400, valid: 0.5, test: 0.5}").datasets["ethanol"].split
    assert split.shares == {"train": 400, "valid": 0.5, "test": 0.5}


@pytest.mark.parametrize("share", ["0", "1", "1.0", "-5", "1.5", "[1]", "[]", "null"])
def test_neither_count_nor_fraction(mistake, share):
    found = mistake(f"datasets.ethanol.split.train={share}")
    assert "datasets.ethanol.split.train: expected a count above 1, a fraction between 0 and 1, or paths" in found


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("split.train=0.9", "split: the fractions of train, valid and test add up to 1.1; expected at most 1"),
        ("split.method=group", "split: method group needs by; add it"),
        ("split.method=frames", "split: method frames needs file; add it"),
        ("split.by=file", "split: by is for method group, but method is blocks; remove by"),
        ("split.stratify=true", "split: stratify is for method random, but method is blocks; remove stratify"),
        ("split.train=a.xyz", "split: train is a path, but method is blocks; write a number, or method: files"),
        (
            "split.method=files",
            "split: method files needs a path for each of train, valid and test; give one for train",
        ),
        ("split={method: files, train: a, valid: b, test: c}", "source is given, but split.method is files"),
        ("split.test=null", "split: test is null, but method is blocks; write a number, or method: files"),
        ("source=null", "source is missing; give the path of the reference file"),
        ("source=[]", "source: expected at least 1 entry, found []"),
        ("source=[5]", "source: expected a path, a glob or {url: ..., sha256: ...}, found 5"),
        (
            "source={url: a.npz}",
            "source: url: expected the address of a file, http://... or https://..., found 'a.npz'",
        ),
        ("source={url: 'http://a.org/b', sha: 0}", "source: sha: unknown key; did you mean sha256?"),
        ("source={url: 'http://a.org/b', sha256: 0f}", "source: sha256: expected 64 hexadecimal digits, found '0f'"),
        ("split.seed=3", "split: seed is for methods random and group, but method is blocks; remove seed"),
        ("keys={energy: -energy}", "keys.energy: '-energy' would turn the sign of energies"),
        ("keys={stress: a, virial: b}", "keys: stress and virial are both given"),
        ("units.energy=kcal/mole", "units.energy: unknown energy unit 'kcal/mole'; did you mean 'kcal/mol'?"),
        ("units.energy=1", "units.energy: expected text, found 1"),
        ("units.stress=Gpascal", "units.stress: unknown stress unit 'Gpascal'"),
        ("store.units.length=mm", "store.units.length: unknown length unit 'mm'; did you mean 'nm'?"),
        ("store.units.stress=GPa", "store.units.stress: unknown key"),
        ("store.dtype=float16", "store.dtype: expected 'float64' or 'float32', found 'float16'"),
    ],
)
def test_impossible_combinations_and_unknown_units(mistake, override, message):
    found = mistake(f"datasets.ethanol.{override}")
    assert found.startswith("config: datasets.ethanol")
    assert message in found


def test_one_third_each_is_not_more_than_one():
    DatasetConfig(source="a", split={"train": 0.7, "valid": 0.2, "test": 0.1})


def test_split_by_files():
    split = {"method": "files", "train": ["a.xyz", "b.xyz"], "valid": "c.xyz", "test": "d*.xyz"}
    assert DatasetConfig(split=split).split.shares == {
        "train": ["a.xyz", "b.xyz"],
        "valid": ["c.xyz"],
        "test": ["d*.xyz"],
    }
