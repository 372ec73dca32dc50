from dataclasses import replace

from forgefield.trainers.fingerprint import code


def test_the_code_of_a_users_own_model_counts(tmp_path, monkeypatch, random_mace):
    mace = random_mace((1, 8))
    potential = replace(mace, architecture="python", config={"object": "own_model:Model"})
    (tmp_path / "own_model.py").write_text("import own_layers\n")
    (tmp_path / "own_layers.py").write_text("WIDTH = 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = dict(code(potential))
    (tmp_path / "own_layers.py").write_text("WIDTH = 8\n")
    after = dict(code(potential))
    assert before.keys() == after.keys() == {"code/own_model.py", "code/own_layers.py"}
    assert [name for name in before if before[name] != after[name]] == ["code/own_layers.py"]
    assert dict(code(mace)) == {}
