"""``docs/metrics.md`` and ``workflow/schemas/metrics.schema.json``, written from the models of ``metrics.json``."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgefield.evaluation.metrics_file import Metrics
from forgefield.files import atomic_file

PAGE = Path("docs/metrics.md")
SCHEMA = Path("workflow/schemas/metrics.schema.json")
COMMAND = "python -m forgefield.evaluation"

HEAD = f"""\
<!-- Written by `{COMMAND}` from src/forgefield/evaluation; edit there. -->
# Metrics

`forgefield test` (in the workflow, the rule `evaluate`) writes `metrics.json` beside `predictions_SPLIT.h5`. Every
number is computed in double precision from those predictions, in the order of the data; so the number of processes that
made the predictions cannot change it. The [JSON schema](../workflow/schemas/metrics.schema.json) is for programs.
For the run of [run_files.md](run_files.md):

```python
import json

metrics = json.load(open("runs/my_run/metrics.json"))
print(metrics["splits"]["test"]["finetuned"]["forces"]["mae"], metrics["units"]["forces"])
print(metrics["parts"]["test"]["element"]["O"]["errors"]["finetuned"]["forces"]["mae_interval"])
```

## What is compared

| quantity | unit | reference and prediction |
|---|---|---|
| `energy_per_atom` | eV/atom | total energy over the number of atoms |
| `energy` | eV | total energy |
| `relative_energy` | eV | total energy less the mean of its kind over the structures of the same composition |
| `forces` | eV/Å | each component of the force on each atom |
| `force_norms` | eV/Å | the magnitude of the force on each atom |
| `force_angles` | degree | the angle between the two forces on each atom, which is the error |
| `stress` | eV/Å³ | each of the nine components of the stress, positive where the cell wants to shrink |

Tables and pictures have other words for the models:

| key | in tables and pictures | model |
|---|---|---|
| `foundation` | zero-shot | as it came |
| `refitted` | zero-shot, refitted | the same with energy shifts fitted to the training set: other energies alone |
| `finetuned` | fine-tuned | after training |
| `trained` | from scratch | after training from random parameters; such a run has no other |

A label that is absent or has the weight 0 is counted under `absent` and nowhere else. With the errors e of n values,
`mae` is the mean of |e|, `rmse` the root of the mean of e², `max`, `median` and `p95` are the largest, the median and
the 95th percentile of |e| (exact, with linear interpolation between values), and `r2` is 1 less the sum of e² over that
of the reference's squared deviations from its mean. Where either force on an atom is below 0.001 eV/Å, the angle is
absent, too: such directions are noise in most reference calculations, and change with the rounding of another number
of devices.

`mae_interval` and `rmse_interval` say how far the number could be off because the split is a sample: structures are
drawn anew with replacement, as many as there are, and 95 % of the results lie in the interval. All values of a
structure are drawn together, for they are not independent. Of more than 1,000 structures, blocks of consecutive ones
are drawn: frames of a trajectory resemble their neighbors. The random numbers are the same every time.

## Every key
"""


def write_generated_files(root: Path | str) -> None:
    """Write both files under the repository's root."""
    for path, text in generated_files().items():
        with atomic_file(Path(root) / path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def generated_files() -> dict[Path, str]:
    """The content of both files by their path in the repository."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Metrics.model_json_schema()
    sections = "\n".join([HEAD, *_sections(schema)])
    return {PAGE: sections, SCHEMA: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"}


def _sections(schema: dict[str, Any]) -> Iterator[str]:
    """A table for each object, in the order in which they are met from the root."""
    waiting, met = [("metrics.json", schema)], set()
    while waiting:
        title, section = waiting.pop(0)
        keys = section["properties"].items()
        rows = [f"| `{name}` | {_kind(field)} | {field['description']} |" for name, field in keys]
        about = "" if section is schema else f"{section['description']}\n\n"
        yield f"### {title}\n\n{about}| key | holds | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"
        for name in (_object(field) for _, field in keys):
            if name and name not in met:
                met.add(name)
                waiting.append((name, schema["$defs"][name]))


def _object(field: dict[str, Any]) -> str | None:
    """The object that a key holds, itself or by name."""
    inner = [field, *field.get("anyOf", []), field.get("additionalProperties", {})]
    return next((option["$ref"].rpartition("/")[2] for option in inner if "$ref" in option), None)


def _kind(field: dict[str, Any]) -> str:
    """The type in words."""
    if "anyOf" in field:
        return " or ".join(_kind(option) for option in field["anyOf"])
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "const" in field:
        return f"`{field['const']}`"
    if field["type"] == "object":
        return f"{_kind(field['additionalProperties'])} by name"
    if field["type"] == "array":
        return "two numbers"
    return {"integer": "whole number", "number": "number", "string": "text", "null": "`null`"}[field["type"]]
