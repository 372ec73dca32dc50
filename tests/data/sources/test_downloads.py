"""Files from a real server on this machine."""

import socket
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from forgefield.config.dataset import DatasetConfig, Download
from forgefield.data.convert import convert_dataset
from forgefield.data.sources import find_files
from forgefield.data.sources.downloads import DOWNLOADS, fetch, local_path
from forgefield.errors import MachineError, UserError
from forgefield.files import sha256_of


class Handler(SimpleHTTPRequestHandler):
    """Serves a directory, counts requests, and cuts files named short.* in half. resume.* it can send from any byte."""

    requests: list[str]

    def do_GET(self):
        self.requests.append(self.path)
        if "resume" not in self.path:
            return super().do_GET()
        content = Path(self.translate_path(self.path)).read_bytes()
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : start + 6])  # never more than six bytes at a time
        return None

    def copyfile(self, source, outputfile):
        content = source.read()
        outputfile.write(content[: len(content) // 2] if "short" in self.path else content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The server's address, its directory and the list of requests; the working directory is another."""
    (tmp_path / "served").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    handler = type("Counting", (Handler,), {"requests": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path / "served"))) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}", tmp_path / "served", handler.requests
        served.shutdown()
        thread.join()


@pytest.fixture
def water(server):
    """A served dataset of ten structures: its URL and its file."""
    url, directory, _ = server
    random = np.random.default_rng(0)
    rest = np.array([[0.0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]])
    r = rest + random.normal(scale=0.02, size=(10, 3, 3))
    f = random.normal(size=(10, 3, 3))
    np.savez(directory / "water.npz", R=r, z=np.array([8, 1, 1]), E=random.normal(size=10), F=f)
    return f"{url}/water.npz", directory / "water.npz"


def files_here():
    return [path for path in DOWNLOADS.rglob("*") if path.is_file()]


def test_a_dataset_is_converted_from_its_url_and_loaded_once(server, water, tmp_path):
    url, file = water
    source = {"url": url, "sha256": sha256_of(file)}
    config = DatasetConfig(source=source, units={"energy": "kcal/mol", "length": "angstrom"}, split={"train": 6})
    for output in ("first", "second"):
        report = convert_dataset("water", config, tmp_path / output)
    assert server[2] == ["/water.npz"]
    assert report["split"]["train"]["structures"] == 6
    assert report["sources"][0]["path"] == str(local_path(url))
    assert report["sources"][0]["sha256"] == sha256_of(file)
    assert files_here() == [local_path(url)]


def test_the_sha256_that_is_not_listed_is_printed_as_a_line_to_add(server, water):
    url, file = water
    with pytest.raises(UserError) as caught:
        find_files(Download(url=url))
    assert f"write `source: {{url: {url}, sha256: {sha256_of(file)}}}`" in str(caught.value)
    assert find_files(Download(url=url, sha256=sha256_of(file).upper())) == [local_path(url)]
    assert server[2] == ["/water.npz"]


def test_a_file_with_another_sha256_is_not_kept(water):
    with pytest.raises(UserError, match=f"water.npz: has sha256 {sha256_of(water[1])}, but 0000"):
        fetch(water[0], "0" * 64)
    assert not files_here()


def test_a_file_that_is_here_is_checked_again(water):
    fetch(water[0], None).write_bytes(b"changed")
    with pytest.raises(UserError, match=r"water\.npz: has sha256 .* is listed for http://.*; correct it or remove"):
        fetch(water[0], sha256_of(water[1]))


def test_half_a_file_is_not_kept(server):
    url, directory, _ = server
    (directory / "short.npz").write_bytes(b"0123456789")
    with pytest.raises(MachineError, match=r"short\.npz: ended after 5 of 10 bytes; run again"):
        fetch(f"{url}/short.npz", None)
    assert not files_here()


def test_a_load_that_was_cut_off_is_continued(server):
    url, directory, requests = server
    (directory / "resume.xyz").write_bytes(b"0123456789")
    sha256 = sha256_of(directory / "resume.xyz")
    with pytest.raises(MachineError, match=r"resume\.xyz: ended after 6 of 10 bytes; run again"):
        fetch(f"{url}/resume.xyz", sha256)
    assert not local_path(f"{url}/resume.xyz").exists()
    assert fetch(f"{url}/resume.xyz", sha256).read_bytes() == b"0123456789"
    assert len(requests) == 2
    assert files_here() == [local_path(f"{url}/resume.xyz")]


def test_a_load_of_another_file_is_not_continued(server):
    url, directory, _ = server
    (directory / "resume.xyz").write_bytes(b"0123456789")
    with pytest.raises(MachineError):
        fetch(f"{url}/resume.xyz", "0" * 64)
    with pytest.raises(UserError, match=r"has sha256 .*, but 000"):
        fetch(f"{url}/resume.xyz", "0" * 64)
    assert not files_here()


@pytest.mark.parametrize("name", ["resume.xyz", "plain.xyz"])
def test_a_load_is_begun_again_where_the_server_does_not_continue(server, name):
    """The part here is whole already, or longer than the file; plain.xyz is always sent from its beginning."""
    url, directory, _ = server
    (directory / name).write_bytes(b"01234")
    path = local_path(f"{url}/{name}")
    path.parent.mkdir(parents=True)
    path.with_name(f".{name}.part").write_bytes(b"abcdef")
    assert fetch(f"{url}/{name}", sha256_of(directory / name)).read_bytes() == b"01234"


def test_a_missing_file_is_the_addresss_fault(server):
    with pytest.raises(UserError, match=r"nothing\.npz: the server answers 404 File not found; correct the address"):
        fetch(f"{server[0]}/nothing.npz", None)


def test_without_a_network_the_line_says_where_to_put_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # never listens
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/data/a.npz"
        with pytest.raises(
            MachineError, match=r"a\.npz: not reached \(.*refused\); load it elsewhere and put it at /"
        ) as e:
            fetch(url, None)
    assert str(e.value).endswith(str(tmp_path / local_path(url)))
    local_path(url).parent.mkdir(parents=True, exist_ok=True)
    local_path(url).write_bytes(b"put here by hand")
    assert fetch(url, sha256_of(local_path(url))) == local_path(url)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://a.org/data/b.npz", "a.org/data/b.npz"),
        ("https://user:secret@a.org:8080/../b.npz", "a.org:8080/b.npz"),
        ("https://a.org/b.npz?version=1/2", "a.org/version%3D1%2F2/b.npz"),
    ],
)
def test_where_files_are_kept(url, path):
    assert local_path(url) == DOWNLOADS / path
