"""The pictures of runs, as small as a page has room for."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from forgefield.errors import UserError
from forgefield.evaluation.style import origin_of
from forgefield.report.collect import Run
from forgefield.report.faults import Faults

WIDTH, LEAST = 1000, 400  # pixels: legible in full, and still to be recognized
QUALITY = 80  # a tenth of the original's size


@dataclass(frozen=True)
class Picture:
    """A picture.

    Attributes:
        name: in words.
        address: the data URL that holds it.
    """

    name: str
    address: str


def fit_pictures(runs: Sequence[Run], room: int, faults: Faults) -> list[list[Picture]]:
    """The pictures of each run, whose addresses together have at most ``room`` bytes.

    They are as wide as fits; of more than fit at the least width, those of the last runs are left out, which
    ``faults`` then say. So they do of a picture that cannot be read.
    """
    found = [_read(run, faults) for run in runs]
    if (size := sum(map(_size, found))) > room:
        width = max(LEAST, int(0.9 * WIDTH * (max(room, 0) / size) ** 0.5))
        found = [{name: _drawn(io.BytesIO(content), width) for name, content in of_run.items()} for of_run in found]
    shown = 0
    for of_run in found:
        room -= _size(of_run)
        shown += room >= 0
    if names := ", ".join(run.name for run in runs[shown:]):
        faults.say(f"left out: pictures of {names}: the page has no room for them; report fewer runs at once")
    kept = found[:shown] + [{} for _ in runs[shown:]]
    return [[Picture(name, _address(content)) for name, content in of_run.items()] for of_run in kept]


def _read(run: Run, faults: Faults) -> dict[str, bytes]:
    """Name -> content of each picture."""
    found = {}
    for path in run.pictures:
        with faults.leaving_out(f"a picture of {run.name}"):
            try:
                origin, content = origin_of(path), _drawn(path, WIDTH)
            except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises
                raise UserError(f"{path}: cannot be read ({error}); draw it again with `forgefield plot`") from None
            if origin is None:  # a user's own
                continue
            if origin != run.origin:
                raise UserError(f"{path}: not drawn from this metrics.json; draw it again with `forgefield plot`")
            found[path.stem.replace("_", " ")] = content
    return found


def _drawn(source: Path | io.BytesIO, width: int) -> bytes:
    with Image.open(source) as image:
        small = image.convert("RGB")
    small.thumbnail((width, width))
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=QUALITY)
    return buffer.getvalue()


def _address(content: bytes) -> str:
    return "data:image/webp;base64," + base64.b64encode(content).decode()


def _size(pictures: dict[str, bytes]) -> int:
    return sum(len(_address(content)) for content in pictures.values())
