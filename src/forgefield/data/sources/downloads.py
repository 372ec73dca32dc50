"""Files from the internet: loaded once, checked by their sha256, kept under results/downloads.

A load that was cut off is continued where the sha256 is listed: only that would tell that both parts are of one file.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from forgefield.errors import MachineError, UserError
from forgefield.files import sha256_of, sync

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
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with open(part, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another process may be loading the same
        if path.exists():
            return
        try:
            _append(url, path, file, start=file.tell() if sha256 else 0)
        except BaseException:
            if sha256 is None or file.tell() == 0:
                part.unlink()
            raise
        if sha256 not in (None, found := sha256_of(part)):
            part.unlink()
            raise UserError(f"{url}: has sha256 {found}, but {sha256} is listed; correct it if you trust this file")
        os.replace(part, path)
    sync(path.parent)


def _append(url: str, path: Path, file: BinaryIO, start: int) -> None:
    """Load what follows the first ``start`` bytes, or everything where the server cannot begin there."""
    with closing(_opened(url, path, start)) as response:
        start = start if response.status == HTTPStatus.PARTIAL_CONTENT else 0
        file.truncate(start)
        for chunk in _chunks(response, url, loaded=start):
            file.write(chunk)
    file.flush()
    os.fsync(file.fileno())


def _opened(url: str, path: Path, start: int) -> HTTPResponse:
    headers = {"User-Agent": "forgefield"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        return urlopen(Request(url, headers=headers), timeout=TIMEOUT_S)
    except HTTPError as error:
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            return _opened(url, path, 0)
        raise UserError(f"{url}: the server answers {error.code} {error.reason}; correct the address") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise MachineError(f"{url}: not reached ({reason}); load it elsewhere and put it at {path.resolve()}") from None


def _chunks(response: HTTPResponse, url: str, loaded: int) -> Iterator[bytes]:
    """The content piece by piece after the ``loaded`` bytes that are here, with progress on stderr."""
    size = None if response.length is None else loaded + response.length
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"loading {url}", highlight=False, soft_wrap=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"loading {url}", total=size, completed=loaded)
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
