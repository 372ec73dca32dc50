"""The tables in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rows import Results, Row

from forgefield.files import atomic_file

MISSING = "not measured"
END = "<!-- end -->"
SPEED = (
    "model",
    "system",
    "precision",
    "mace-torch, 1 thread",
    "mace-torch, 2 threads",
    "forgefield",
    "ratio",
    "rounds",
)
COSTS = (
    "model", "system", "precision", "compilation, s", "from the cache, s", "peak memory, MiB", "mace-torch",
    "step, ms", "batch, ms", "with new neighbor lists", "mace-torch", "with new neighbor lists",
)  # fmt: skip
AGREEMENT = ("model", "system", "precision", "energies", "forces", "loss", "gradient", "loss after updates")
ALLOCATOR = ("model", "system", "precision", "side", "ms/structure", "mace-torch / this", "peak memory, MiB")
MEMORY = ("model", "system", "precision", "steps", "resident memory, MiB", "step alone, ms", "step in training, ms")


def markdown(results: Results, rows: Iterable[Row]) -> str:
    """Tables of the given rows; those that were not measured say so."""
    rows = list(rows)
    parts = _origins(results, rows)
    for title, mode, head, fill in (
        ("Training step, ms/structure", "train", SPEED, _speed),
        ("Inference, ms/structure", "inference", SPEED, _speed),
        ("Compilation, memory and batches of a training", "train", COSTS, _costs),
        ("Largest differences of both sides before they are timed", "train", AGREEMENT, _agreement),
        ("What the memory allocator's setting gives", "allocator", ALLOCATOR, _allocator),
        ("Memory of a long training", "memory", MEMORY, _memory),
    ):
        if any(row.mode == mode for row in rows):
            lines = [cells for row in rows if row.mode == mode for cells in _lines(results.rows, row, head, fill)]
            parts.append(f"### {title}\n\n" + table(head, lines))
    return "\n\n".join(parts) + "\n"


def _origins(results: Results, rows: Iterable[Row]) -> list[str]:
    """The machine and the systems of what was measured."""
    origins = {results.rows[row]["title"]: results.rows[row]["origin"] for row in rows if row in results.rows}
    if not origins:
        return []
    systems = "\n".join(f"* {title}: {origin}" for title, origin in sorted(origins.items()))
    return [measured_on(results.machine), systems]


def measured_on(machine: Mapping[str, Any]) -> str:
    """A sentence on processor, cores and versions."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"Measured on {machine['processor']}, {machine['cores']} cores, with {versions}."


def begin(script: str) -> str:
    """The marker before what a script of this folder writes into a page; END is the one behind it."""
    return f"<!-- begin: written by benchmarks/{script} -->"


def publish(text: str, results: Path) -> None:
    """Print the tables and write them beside the file of the results."""
    with atomic_file(results.with_suffix(".md")) as file:
        file.write_text(text)
    print(text)


def update_page(page: Path, script: str, text: str) -> None:
    """Replace what stands between the page's markers of a script."""
    before, rest = page.read_text().split(begin(script))
    _, after = rest.split(END, 1)
    page.write_text(f"{before}{begin(script)}\n\n{text}\n{END}{after}")


def _lines(measured: Mapping[Row, Any], row: Row, head: tuple[str, ...], fill) -> list[list[str]]:
    if row not in measured:
        return [[row.model, row.system, row.precision, MISSING] + [""] * (len(head) - 4)]
    content = measured[row]
    return [[row.model, content["title"], row.precision, *cells] for cells in fill(content)]


def table(head: Sequence[str], lines: Iterable[Sequence[str]], words: int = 3) -> str:
    """A table whose first columns hold words, the others numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def _speed(row: dict[str, Any]) -> list[list[str]]:
    per_structure = 1e3 / row["structures"]
    by_threads = {**row["threads"]["seconds"], str(row["threads"]["best"]): median(row["seconds"]["torch"])}
    theirs = [f"{per_structure * by_threads[n]:.2f}" for n in ("1", "2")]
    ours = f"{per_structure * median(row['seconds']['jax']):.2f}"
    return [[*theirs, ours, _ratio(row, "torch", "jax"), str(len(row["seconds"]["jax"]))]]


def _ratio(row: dict[str, Any], above: str, below: str) -> str:
    return ratio(row["seconds"][above], row["seconds"][below], 1)


def ratio(above: Iterable[float], below: Iterable[float], digits: int) -> str:
    """Median of the rounds' ratios, with the smallest and largest."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return f"**{median(ratios):.{digits}f}** ({min(ratios):.{digits}f} to {max(ratios):.{digits}f})"


def _costs(row: dict[str, Any]) -> list[list[str]]:
    ours, theirs = row["batches"]["jax"], row["batches"]["torch"]
    milliseconds = [median(row["seconds"]["jax"]), ours["kept"], ours["new"], theirs["kept"], theirs["new"]]
    compilation = [f"{row['compilation'][key]:.1f}" for key in ("cold", "cached")]
    memory = [str(row["peak"][side]) for side in ("jax", "torch")]
    return [[*compilation, *memory, *(f"{1e3 * seconds:.1f}" for seconds in milliseconds)]]


def _agreement(row: dict[str, Any]) -> list[list[str]]:
    return [[f"{row['differences'][kind]:.0e}" for kind in ("energy", "forces", "loss", "gradient", "update")]]


def _allocator(row: dict[str, Any]) -> list[list[str]]:
    return [
        [
            side.replace("jax", "forgefield").replace("torch", "mace-torch"),
            f"{1e3 * median(seconds) / row['structures']:.2f}",
            _ratio(row, "torch", side),
            str(row["peak"][side]),
        ]
        for side, seconds in row["seconds"].items()
    ]


def _memory(row: dict[str, Any]) -> list[list[str]]:
    times = [f"{1e3 * row['alone']:.1f}", f"{1e3 * row['training']:.1f}"]
    return [[", ".join(map(str, row["steps"])), ", ".join(map(str, row["resident"])), *times]]
