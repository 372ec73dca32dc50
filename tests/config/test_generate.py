import re
import subprocess
import sys

import jsonschema
import pytest

from forgefield.config import Config, load_config
from forgefield.config.generate import COMMAND, HEAD, generated_files
from forgefield.config.messages import key_paths
from forgefield.launch import run_resources


@pytest.mark.parametrize("path", generated_files(), ids=str)
def test_generated_files_are_up_to_date(root, path):
    current = (root / path).read_text(encoding="utf-8") if (root / path).exists() else "(missing)"
    assert current == generated_files()[path], f"{path} has drifted from src/forgefield/config: run `{COMMAND}`"


def test_the_command_writes_them(tmp_path):
    subprocess.run([sys.executable, *COMMAND.split()[1:], str(tmp_path)], check=True)
    for path, text in generated_files().items():
        assert (tmp_path / path).read_text(encoding="utf-8") == text


def test_every_key_is_described():
    sections = [Config.model_json_schema(), *Config.model_json_schema()["$defs"].values()]
    undescribed = [name for section in sections for name, f in section["properties"].items() if "description" not in f]
    assert not undescribed
    readme = next(text for path, text in generated_files().items() if path.suffix == ".md")
    for path in key_paths(Config):
        assert f"| `{path.rpartition('.')[2]}` |" in readme


def test_the_examples_of_the_readme_are_valid(root, tmp_path):
    ethanol, runs, *clusters = re.findall(r"```yaml\n(.*?)```", HEAD, flags=re.DOTALL)
    assert len(ethanol.splitlines()) == 5
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "ethanol.yaml").write_text(ethanol)
    (tmp_path / "runs.yaml").write_text(runs)
    ethanol_run = runs.partition("training:")[0]
    assert load_config(tmp_path / "runs.yaml").run_names == ["gentle", "brisk"]
    default = load_config(root / "config" / "config.yaml", ["dataset=ethanol"], folder=tmp_path)
    assert default.run_names == ["ethanol-hcno-gfn2-jax"]
    asked = []
    for cluster in clusters:
        (tmp_path / "cluster.yaml").write_text(ethanol_run + cluster)
        asked.append(run_resources(load_config(tmp_path / "cluster.yaml").run("ethanol-small-jax")))
    gpu, cpu = asked
    assert (gpu["nodes"], gpu["tasks"], gpu["gres"], gpu["cpus_per_task"]) == (2, 2, "gpu:a100:4", 32)
    assert (cpu["nodes"], cpu["tasks_per_node"], cpu["gres"], cpu["cpus_per_task"]) == (2, 16, None, 4)


def test_the_schema_accepts_the_default_and_refuses_unknown_keys(root, load):
    schema = Config.model_json_schema()
    jsonschema.validate(load().model_dump(mode="json"), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"training": {"lrr": 1}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"training": {"epochs": 0}}, schema)
