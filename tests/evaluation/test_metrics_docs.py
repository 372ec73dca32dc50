import json
import re
import subprocess
import sys

import jsonschema
import pytest

from forgefield.evaluation.metrics_docs import COMMAND, HEAD, SCHEMA, generated_files
from forgefield.evaluation.metrics_file import Metrics
from forgefield.evaluation.values import METRIC_UNITS


@pytest.mark.parametrize("path", generated_files(), ids=str)
def test_generated_files_are_up_to_date(root, path):
    current = (root / path).read_text(encoding="utf-8") if (root / path).exists() else "(missing)"
    assert current == generated_files()[path], f"{path} has drifted from src/forgefield/evaluation: run `{COMMAND}`"


def test_the_command_writes_them(tmp_path):
    subprocess.run([sys.executable, *COMMAND.split()[1:], str(tmp_path)], check=True)
    for path, text in generated_files().items():
        assert (tmp_path / path).read_text(encoding="utf-8") == text


def test_every_key_is_described():
    schema = Metrics.model_json_schema()
    for section in [schema, *schema["$defs"].values()]:
        assert section["description"]
        assert all("description" in field for field in section["properties"].values())


def test_every_quantity_has_its_unit_in_the_page():
    rows = re.findall(r"^\| `(\w+)` \| ([\w/Å³]+) \|", HEAD, flags=re.MULTILINE)
    words = {"eV/angstrom": "eV/Å", "eV/angstrom^3": "eV/Å³"}
    assert dict(rows) == {quantity: words.get(unit, unit) for quantity, unit in METRIC_UNITS.items()}


def test_the_schema_holds_for_a_file_and_not_for_another(root, metrics_content):
    schema = json.loads((root / SCHEMA).read_text())
    jsonschema.validate(metrics_content, schema)
    del metrics_content["splits"]["test"]["trained"]["forces"]["mae"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(metrics_content, schema)
