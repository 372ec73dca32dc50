"""The files of a user's own model, whose change makes it another model."""

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path


def code_files(place: str) -> list[Path]:
    """The Python files of what ``MODULE:OBJECT`` names; none where Python does not find it.

    Of a package these are all of its files. A single module counts with what it imports from its own directory,
    directly or through others, unless that is where packages are installed. No code is run.
    """
    top = place.partition(":")[0].partition(".")[0]
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return []
    if spec is None or not (spec.has_location or spec.submodule_search_locations):
        return []
    if spec.submodule_search_locations:
        return sorted(path for folder in spec.submodule_search_locations for path in Path(folder).rglob("*.py"))
    module = Path(spec.origin)
    found, left = set(), [module]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left += [] if "site-packages" in path.parts else _beside(path, module.parent)
    return sorted(found)


def _beside(path: Path, folder: Path) -> Iterator[Path]:
    """The files in ``folder`` that a file imports."""
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:  # the import says so
        return
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in {name.partition(".")[0] for name in names} - {""}:
            yield from [file for file in [folder / f"{name}.py"] if file.is_file()]
            yield from (folder / name).rglob("*.py")
