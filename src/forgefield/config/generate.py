"""``config/README.md`` and ``workflow/schemas/config.schema.json``, written from the models."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgefield.config.run import Config
from forgefield.files import atomic_file

README = Path("config/README.md")
SCHEMA = Path("workflow/schemas/config.schema.json")
COMMAND = "python -m forgefield.config"

HEAD = f"""\
<!-- Written by `{COMMAND}` from src/forgefield/config; edit there. -->
# Configuration

`config.yaml` in this directory is the default run. Change top-level keys of it with `snakemake --config dataset=NAME`,
or write a file of your own and run it with `snakemake --configfile FILE`; it stands on its own, and what it leaves out
has the default below. A key that does not exist, a value of the wrong type or settings that contradict each other end
the run before it starts, with one line that names the key.

## Your own data in five lines

Save this as `datasets/ethanol.yaml` in this directory:

```yaml
source: ethanol.npz
units:
  energy: kcal/mol
  length: angstrom
split: {{train: 1000, valid: 200, test: 500}}
```

`snakemake --config dataset=ethanol` then adapts the model of `config.yaml` to it, and the results of other datasets
stay. The units are those of your file; forgefield converts them, and reports in eV and Å.

## Several runs in a file of your own

```yaml
dataset: ethanol
model: small
models:
  small: {{foundation: resources/foundation/hcno-gfn2}}
training: {{epochs: 200}}
runs:
  gentle: {{training: {{lr: 1e-4}}}}
  brisk: {{training: {{lr: 1e-3}}}}
```

The top level holds for every run; what stands under a run's name overrides it there. Results are in
`results/runs/NAME`. Datasets and models can be written in the file, as `small` is, or be files `datasets/NAME.yaml` and
`models/NAME.yaml` beside it, as `ethanol` is. `docs/run_files.md` tells how to train and test from such a file without
the workflow.

## On a cluster

`snakemake --profile slurm` runs every stage as a job of Slurm. What jobs ask for is one section, which a run can
override like any other; `forgefield doctor --slurm` proposes it for your cluster. Two nodes of four GPUs each, and the
small stages in another partition:

```yaml
devices: 4
n_nodes: 2
slurm:
  account: my_project
  partition: gpu
  cpu_partition: cpu
  gpus: a100            # or true: any type
  cpus_per_device: 8
  mem_mb: 120000        # on each node
  hours: 24
training:
  batch: 16             # beside the other keys there: a multiple of all devices, here 8
```

A CPU cluster, on whose nodes of 64 cores each of 32 MPI ranks has four:

```yaml
parallelism: mpi
devices: 16
n_nodes: 2
slurm:
  partition: standard
  qos: normal
  constraint: icelake
  cpus_per_device: 4
  mem_mb: 64000
  hours: 12
training:
  batch: 32
```

`docs/slurm.md` tells the rest.

## Every key

Paths are relative to the directory in which the command is started. `null` means: not given.
"""


def write_generated_files(root: Path | str) -> None:
    """Write both files under the repository's root."""
    for path, text in generated_files().items():
        with atomic_file(Path(root) / path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def generated_files() -> dict[Path, str]:
    """The content of both files by their path in the repository."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Config.model_json_schema()
    return {README: _readme(schema), SCHEMA: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"}


def _readme(schema: dict[str, Any]) -> str:
    parts = [HEAD]
    sections = {"": schema}
    while sections:
        prefix, section = sections.popitem()
        title = f"`{prefix}`" if prefix else "Top level"
        rows = [_row(prefix, name, field) for name, field in section["properties"].items()]
        table = ["| key | type | default | meaning |", "|---|---|---|---|", *rows]
        about = f"{section['description']}\n\n" if prefix else ""
        parts.append(f"### {title}\n\n{about}" + "\n".join(table) + "\n")
        inner = _sections(prefix, section, schema)
        sections |= dict(reversed(list(inner)))
    return "\n".join(parts)


def _sections(prefix: str, section: dict[str, Any], schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sections inside one, by their full key."""
    for name, field in section["properties"].items():
        key = f"{prefix}.{name}" if prefix else name
        if ref := _reference(field):
            yield key, schema["$defs"][ref.rpartition("/")[2]]
        elif "$ref" in (entry := _entry_schema(field)):
            yield f"{key}.NAME", schema["$defs"][entry["$ref"].rpartition("/")[2]]


def _reference(field: dict[str, Any]) -> str | None:
    """Where the schema of a section is, which a name may stand for."""
    return next((option["$ref"] for option in [field, *field.get("anyOf", [])] if "$ref" in option), None)


def _entry_schema(field: dict[str, Any]) -> dict[str, Any]:
    """The schema of the entries of a dictionary of named sections, else nothing."""
    return next(iter(field.get("patternProperties", {}).values()), {})


def _row(prefix: str, name: str, field: dict[str, Any]) -> str:
    meaning = " ".join(field["description"].split())
    is_section = _reference(field) or "$ref" in _entry_schema(field)
    kind = "section" if is_section else _kind(field).replace("|", "\\|")
    default = "" if is_section else f"`{_plain(field['default'])}`"
    return f"| `{name}` | {kind} | {default} | {meaning} |"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _kind(field: dict[str, Any]) -> str:
    """The type in words."""
    if "anyOf" in field:
        kinds = [_kind(option) for option in field["anyOf"]]
        return ", ".join(kinds[:-1]) + f" or {kinds[-1]}"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    words = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`"}
    words |= {"null": "`null`", "object": "section"}
    if field["type"] == "array":
        return f"list of {_kind(field['items'])}"
    return words[field["type"]] + _bounds(field)


def _bounds(field: dict[str, Any]) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    bounds = [f"{sign} {field[key]:.12g}" for key, sign in signs.items() if key in field]
    return f" {', '.join(bounds)}" if bounds else ""
