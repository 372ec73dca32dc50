"""``inputs.json`` in a run's directory: what its inputs were made from, so that only what has changed is made again."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import BaseModel

from forgefield.errors import UserError
from forgefield.files import read_json, sha256_of, write_json

Made = dict[str, Any]


def made_from(settings: BaseModel, *groups: Sequence[Path]) -> Made:
    """The settings and files that something is made from."""
    files = {str(path): sha256_of(path) for group in groups for path in group}
    return {"settings": settings.model_dump(mode="json"), "files": files}


class Record:
    """What each product was made from, in a file; threads may note at the same time."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()

    def is_due(self, product: Path, made: Made) -> bool:
        """Whether the product is not there, or was made from something else."""
        return not product.exists() or self._content().get(product.stem) != made

    @contextmanager
    def making(self, product: Path, made: Made) -> Iterator[None]:
        """Note what a product is made from, once it is; until then nobody knows, as where this is killed."""
        before = self._content().get(product.stem)
        self._note(product, None)
        try:
            yield
        except UserError:  # which leaves what was there
            self._note(product, before)
            raise
        self._note(product, made)

    def _note(self, product: Path, made: Made | None) -> None:
        with self._lock:
            content = self._content()
            others = {name: other for name, other in content.items() if name != product.stem}
            if (noted := others | ({product.stem: made} if made else {})) != content:
                write_json(self._path, noted)

    def _content(self) -> dict[str, Made]:
        return read_json(self._path) if self._path.exists() else {}
