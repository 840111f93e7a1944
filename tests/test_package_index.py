"""Which releases an index has: JSON, HTML, a folder; what cannot be installed here is left out."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kbtools.toolchains.package_index import JSON, PackageIndexError, releases
from kbtools.toolchains.pip_settings import DEFAULT_INDEX, PipSettings, read_pip_settings

FILES: list[dict[str, object]] = [
    {"filename": "tiny-1.0-py3-none-any.whl"},
    {"filename": "tiny-1.0.tar.gz"},
    {"filename": "tiny-1.2.0.tar.gz", "requires-python": ">=3.9"},
    {"filename": "tiny-1.10-py3-none-any.whl", "yanked": False},
    {"filename": "tiny-2.0rc1-py3-none-any.whl"},
    {"filename": "tiny-2.0-py3-none-any.whl", "yanked": "it deletes files"},
    {"filename": "tiny-3.0-py3-none-any.whl", "requires-python": "<3"},
    {"filename": "tiny-4.0-cp27-none-win32.whl"},
    {"filename": "tiny-5.0.exe"},
    {"filename": "tiny_tools-6.0-py3-none-any.whl"},
]
INSTALLABLE = ("1.0", "1.2.0", "1.10")


def as_html(files: list[dict[str, object]]) -> str:
    """A page of PEP 503 with these files."""
    links = []
    for file in files:
        python = str(file.get("requires-python", "")).replace("<", "&lt;").replace(">", "&gt;")
        extra = f' data-requires-python="{python}"' if python else ""
        extra += ' data-yanked=""' if file.get("yanked") else ""
        links.append(f'<a href="../../files/{file["filename"]}#sha256=0"{extra}>a file</a><br/>')
    return f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"


class Index(ThreadingHTTPServer):
    """A package index that has `tiny`, as JSON below `/json` and as HTML below `/html`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str]] = []

    def url(self, path: str, user: str = "") -> str:
        """The address of an index on this server."""
        return f"http://{user}127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    server: Index

    def do_GET(self) -> None:
        """Answers with the page of a project."""
        self.server.requests.append((self.path, self.headers.get("Authorization", "")))
        pages = {
            "/json/tiny/": (JSON, json.dumps({"meta": {"api-version": "1.1"}, "files": FILES})),
            "/html/tiny/": ("text/html", as_html(FILES)),
            "/newer/tiny/": ("text/html", as_html([{"filename": "tiny-7.0.tar.gz"}])),
            "/cut/tiny/": (JSON, '{"files": ['),
        }
        code = 500 if self.path.startswith("/ill/") else 200 if self.path in pages else 404
        kind, text = pages.get(self.path, ("text/plain", ""))
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Index]:
    """The index, answering."""
    with Index() as index:
        threading.Thread(target=index.serve_forever, daemon=True).start()
        yield index
        index.shutdown()


@pytest.mark.parametrize("path", ["json", "html", "json/"])
def test_releases(server: Index, path: str) -> None:
    """Final releases that can be installed here, by version: none that is yanked or of no use."""
    assert releases("Tiny", PipSettings(index_url=server.url(path))) == INSTALLABLE


def test_a_folder_is_an_index(tmp_path: Path) -> None:
    """`file://`: a project's folder has an `index.html`, or the files themselves."""
    project = tmp_path / "simple" / "tiny"
    project.mkdir(parents=True)
    settings = PipSettings(index_url=(tmp_path / "simple").as_uri())
    for file in FILES:
        if not file.keys() & {"yanked", "requires-python"}:
            (project / str(file["filename"])).touch()
    assert releases("tiny", settings) == ("1.0",)
    (project / "index.html").write_text(as_html(FILES))
    assert releases("tiny", settings) == INSTALLABLE


def test_every_index_and_folder_counts(server: Index, tmp_path: Path) -> None:
    """What the index, the extra indexes and the folders of packages have is added up."""
    (tmp_path / "tiny-8.0-py3-none-any.whl").touch()
    (tmp_path / "other-9.0-py3-none-any.whl").touch()
    settings = PipSettings(
        index_url=server.url("json"),
        extra_index_urls=(server.url("newer"), (tmp_path / "missing").as_uri()),
        find_links=(str(tmp_path),),
    )
    assert releases("tiny", settings) == (*INSTALLABLE, "7.0", "8.0")


def test_no_release(server: Index) -> None:
    """A package that no index has is an error that names the indexes, without passwords."""
    settings = PipSettings(index_url=server.url("json", "me:secret@"))
    with pytest.raises(PackageIndexError) as caught:
        releases("nonesuch", settings)
    assert str(caught.value).startswith("no release of nonesuch that can be installed here in http")
    assert "secret" not in str(caught.value)


def test_user_and_password(server: Index) -> None:
    """Both are sent in a header, not in the address."""
    releases("tiny", PipSettings(index_url=server.url("json", "me:p%40ss@")))
    path, header = server.requests[-1]
    assert path == "/json/tiny/"
    assert base64.b64decode(header.removeprefix("Basic ")) == b"me:p@ss"


@pytest.mark.parametrize(
    ("path", "message"),
    [("ill", "answers HTTP Error 500"), ("cut", "is not a page of an index")],
)
def test_an_index_that_is_unwell(server: Index, path: str, message: str) -> None:
    """An index that answers with nonsense is an error: its releases may be the ones that matter."""
    settings = PipSettings(index_url=server.url("json"), extra_index_urls=(server.url(path),))
    with pytest.raises(PackageIndexError, match=message):
        releases("tiny", settings)


def test_an_index_that_does_not_answer() -> None:
    """The reason is named."""
    with pytest.raises(PackageIndexError, match=r"cannot be reached: .*Connection refused"):
        releases("tiny", PipSettings(index_url="http://127.0.0.1:9/simple"))


def test_settings_of_pip(tmp_path: Path) -> None:
    """Variables win over `[install]`, and that over `[global]`; what is empty does not count."""
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://global.example/simple\nfind-links = /a\n    /b\n"
        "extra-index-url = file:///srv/simple\n[install]\nindex-url = https://install.example\n"
    )
    settings = read_pip_settings({"PIP_CONFIG_FILE": str(file), "PIP_EXTRA_INDEX_URL": ""})
    assert settings.index_url == "https://install.example"
    assert settings.find_links == ("/a", "/b")
    assert settings.indexes == ("https://install.example", "file:///srv/simple")
    variables = {"PIP_CONFIG_FILE": str(file), "PIP_INDEX_URL": "https://me.example"}
    assert read_pip_settings(variables).index_url == "https://me.example"
    assert read_pip_settings({**variables, "PIP_NO_INDEX": "1"}).indexes == ()
    assert read_pip_settings({"PIP_CONFIG_FILE": "/dev/null"}).indexes == (DEFAULT_INDEX,)


def test_settings_for_uv() -> None:
    """The same places for uv, unless its own variables are set."""
    settings = PipSettings(index_url="https://a", extra_index_urls=("https://b", "file:///c"))
    assert settings.for_uv({}) == {
        "UV_DEFAULT_INDEX": "https://a",
        "UV_INDEX": "https://b file:///c",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    assert "UV_INDEX" not in settings.for_uv({"UV_INDEX": "https://mine"})
    assert PipSettings().for_uv({}) == {}
