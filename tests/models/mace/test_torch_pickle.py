import os
import pickle
import zipfile

import numpy as np
import pytest
import torch

from forgefield.errors import UserError
from forgefield.models.mace.torch_exchange import from_torch
from forgefield.models.mace.torch_pickle import read_pickle
from forgefield.models.mace.torch_reference import load_pickle, quiet_mace


class Intruder:
    """Would make a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def rewritten(source, target, replacements):
    """Copy a torch file with other bytes in its pickle."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("/data.pkl"):
                for before, after in replacements:
                    assert before in data
                    data = data.replace(before, after)
            new.writestr(name, data)
    return target


def assert_same_potential(found, expected):
    for key in ("config", "energy_shifts", "source"):
        assert getattr(found, key) == getattr(expected, key)
    for key in ("parameters", "buffers"):
        for name, array in getattr(expected, key).items():
            np.testing.assert_array_equal(getattr(found, key)[name], array, err_msg=name, strict=True)


@pytest.fixture(scope="module")
def module(build_mace):
    return build_mace(num_interactions=1, seed=3)


def test_what_a_pickle_would_run_is_only_noted(tmp_path):
    module = torch.nn.Linear(2, 2)
    module.intruder = Intruder(tmp_path / "made")
    torch.save(module, tmp_path / "x.model")
    record = read_pickle(tmp_path / "x.model")
    assert not (tmp_path / "made").exists()
    assert record.intruder.args == (str(tmp_path / "made"),)
    assert type(record.intruder).__name__ == "mkdir"
    assert torch.equal(record.weight, module.weight)
    torch.load(tmp_path / "x.model", weights_only=False)
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("call", [b"cos\nsystem\n(S'touch made'\ntR.", b"cbuiltins\neval\n(S'1'\ntR."])
def test_no_function_is_called(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("x.model", "w") as archive:
        archive.writestr("archive/data.pkl", call)
    assert type(read_pickle(tmp_path / "x.model")).__name__ in ("system", "eval")
    assert [path.name for path in tmp_path.iterdir()] == ["x.model"]


def test_a_model_of_classes_that_have_moved_gives_the_same_bits(module, save_mace, tmp_path):
    path = save_mace(module, tmp_path / "x.model")
    moved = [(b"mace.modules.blocks", b"mace.old.blocks"), (b"e3nn.o3._linear", b"e3nn.former._linear")]
    moved.append((b"mace.modules.radial", b"mace.modules.distances"))
    old = rewritten(path, tmp_path / "old.model", moved)
    with pytest.raises(UserError, match=r"old\.model: mace-torch cannot rebuild this model \(ModuleNotFoundError"):
        load_pickle(old)
    assert_same_potential(from_torch(read_pickle(old)), from_torch(module))


def test_a_model_saved_on_a_gpu_is_read_without_one(module, save_mace, tmp_path):
    path = save_mace(module, tmp_path / "x.model")
    on_gpu = rewritten(path, tmp_path / "gpu.model", [(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")])
    assert_same_potential(from_torch(read_pickle(on_gpu)), from_torch(module))
    assert_same_potential(from_torch(load_pickle(on_gpu)), from_torch(module))


def test_attributes_that_older_versions_lacked_have_their_old_meaning(module, build_mace, save_mace, tmp_path):
    old = build_mace(num_interactions=1, seed=3)
    for name in ("heads", "use_reduced_cg", "apply_cutoff", "edge_irreps", "use_so3", "use_agnostic_product"):
        delattr(old, name)
    del old.radial_embedding.apply_cutoff, old.products[0].use_agnostic_product, old.interactions[0].edge_irreps
    record = read_pickle(save_mace(old, tmp_path / "x.model"))
    assert from_torch(record).config == from_torch(module).config
    assert from_torch(record).source["mace_torch"]["head"] == "Default"


def test_numpy_numbers_among_the_settings(save_mace, build_mace, tmp_path):
    module = build_mace(num_interactions=1, avg_num_neighbors=np.float64(6.25))
    record = read_pickle(save_mace(module, tmp_path / "x.model"))
    assert from_torch(record).config["avg_num_neighbors"] == 6.25


def test_views_of_one_storage(tmp_path):
    module = torch.nn.Linear(2, 2)
    module.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3).T[1:])
    module.register_buffer("empty", torch.zeros(0))
    torch.save(module, tmp_path / "x.model")
    record = read_pickle(tmp_path / "x.model")
    assert record.weight.tolist() == [[1.0, 4.0], [2.0, 5.0]]
    assert record.empty.shape == (0,)


def test_other_files_are_refused_in_one_line(tmp_path):
    (tmp_path / "text.model").write_text("not a model")
    torch.save({"weights": torch.ones(1)}, tmp_path / "dict.model")
    torch.save(torch.nn.Linear(1, 1), tmp_path / "old.model", _use_new_zipfile_serialization=False)
    with quiet_mace():
        torch.jit.script(torch.nn.Linear(1, 1)).save(str(tmp_path / "compiled.model"))
    with zipfile.ZipFile(tmp_path / "broken.model", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"weights": 1})[:-4])
    expected = {
        "text": "neither a whole file of torch.save",
        "dict": r"holds a dictionary such as a state_dict .* save the whole module: torch\.save\(model, path\)",
        "old": "neither a whole file of torch.save nor of its present format; .* load it with mace-torch and save it",
        "compiled": "a compiled TorchScript model",
        "broken": "damaged, or not written by torch.save",
    }
    for name, message in expected.items():
        with pytest.raises(UserError, match=rf"{name}\.model: {message}") as caught:
            read_pickle(tmp_path / f"{name}.model")
        assert "\n" not in str(caught.value)


def with_pickle(path, data):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data)
    return path


def refusal(path):
    """Why a file cannot be imported, or None if it can."""
    try:
        from_torch(read_pickle(path))
    except UserError as error:
        return str(error)
    return None


def test_damage_anywhere_ends_in_one_line_and_runs_nothing(module, save_mace, tmp_path, monkeypatch):
    """Bytes of the file and of its pickle are changed at random; what still reads is inert."""
    monkeypatch.chdir(tmp_path)
    module.intruder = Intruder("made")
    whole = save_mace(module, tmp_path / "x.model").read_bytes()
    del module.intruder
    with zipfile.ZipFile(tmp_path / "x.model") as archive:
        (pickled,) = (archive.read(name) for name in archive.namelist() if name.endswith("/data.pkl"))
    generator, refused = np.random.default_rng(0), 0
    for i in range(300):
        data = bytearray(pickled if i % 3 else whole)
        for position in generator.integers(0, len(data), 1 + i % 4):
            data[position] = generator.integers(0, 256)
        if i % 3:
            with_pickle(tmp_path / "y.model", bytes(data))
        else:
            (tmp_path / "y.model").write_bytes(data[: generator.integers(1, len(data))] if i % 2 else data)
        if message := refusal(tmp_path / "y.model"):
            refused += 1
            assert "\n" not in message
    assert refused > 200
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04\x8e" + b"\xff" * 8,  # bytes longer than any memory
        b"\x80\x04" + b"(" * 10 + b"2" * 3,  # an empty stack
        b"\x80\x04cx\ny\n)R" + b"}b" * 3 + b"0.",  # nothing left to return
        pickle.dumps(float("1e308")).replace(b"G", b"I"),
    ],
)
def test_a_pickle_of_nonsense_is_refused_in_one_line(tmp_path, data):
    with pytest.raises(UserError, match="damaged, or not written by torch") as caught:
        read_pickle(with_pickle(tmp_path / "x.model", data))
    assert "\n" not in str(caught.value)
