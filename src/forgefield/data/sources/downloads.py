"""Files from the internet: loaded once, checked by their sha256, kept under results/downloads."""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from forgefield.errors import MachineError, UserError
from forgefield.files import atomic_file, sha256_of

DOWNLOADS = Path("results/downloads")
TIMEOUT_S, CHUNK_BYTES = 60, 1 << 20


def fetch(url: str, sha256: str | None) -> Path:
    """The path of a file from the internet, which is loaded where it is not here yet.

    A file that someone puts at this path by hand is used like one that was loaded.

    Args:
        url: http or https.
        sha256: what the file must have; None: any file is accepted.

    Raises:
        UserError: the server has no such file, or its sha256 is another.
        MachineError: the network does not reach it, or ends before the file does.
    """
    path = local_path(url)
    if not path.exists():
        _load(url, path, sha256)
    elif sha256 is not None and (found := sha256_of(path)) != sha256:
        raise UserError(f"{path}: has sha256 {found}, but {sha256} is listed for {url}; correct it or remove the file")
    return path


def local_path(url: str) -> Path:
    """Where the file of a URL is kept: under its host and its path there."""
    parts = urlsplit(url)
    *folders, name = [quote(part, safe=" +%") for part in parts.path.split("/") if part not in ("", ".", "..")]
    query = [quote(parts.query, safe="")] if parts.query else []
    return DOWNLOADS.joinpath(parts.netloc.rpartition("@")[2], *folders, *query, name)


def _load(url: str, path: Path, sha256: str | None) -> None:
    """Write the file of ``url`` to ``path``, whole and with the right sha256, or not at all."""
    digest = hashlib.sha256()
    with closing(_opened(url, path)) as response, atomic_file(path) as temporary, open(temporary, "wb") as file:
        for chunk in _chunks(response, url):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        if sha256 not in (None, found := digest.hexdigest()):
            raise UserError(f"{url}: has sha256 {found}, but {sha256} is listed; correct it if you trust this file")


def _opened(url: str, path: Path) -> HTTPResponse:
    try:
        return urlopen(Request(url, headers={"User-Agent": "forgefield"}), timeout=TIMEOUT_S)
    except HTTPError as error:
        raise UserError(f"{url}: the server answers {error.code} {error.reason}; correct the address") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise MachineError(f"{url}: not reached ({reason}); load it elsewhere and put it at {path.resolve()}") from None


def _chunks(response: HTTPResponse, url: str) -> Iterator[bytes]:
    """The content piece by piece, with progress on stderr."""
    size = response.length
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"loading {url}", highlight=False, soft_wrap=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task, loaded = progress.add_task(f"loading {url}", total=size), 0
        while chunk := _read(response, url):
            yield chunk
            loaded += len(chunk)
            progress.update(task, completed=loaded)
    if size is not None and loaded < size:
        raise MachineError(f"{url}: ended after {loaded} of {size} bytes; run again")


def _read(response: HTTPResponse, url: str) -> bytes:
    try:
        return response.read(CHUNK_BYTES)
    except (OSError, HTTPException) as error:
        raise MachineError(f"{url}: the connection failed ({error}); run again") from None
