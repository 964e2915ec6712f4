"""Public tables are fetched whole and checked, or not at all; a local server stands for their sources."""

import hashlib
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import attrs
import pytest

from onlineic import datasets
from onlineic.datasets import CATALOGUE, Dataset, fetch, find, folder_of_data
from onlineic.datasets.__main__ import main
from onlineic.errors import DigestMismatchError, DownloadError, InvalidParameterError, MissingDataError

README = Path(datasets.__file__).with_name("README.md")
TABLE = b"a,b\n" + b"1,2\n" * 1000


class Sources:
    """A server of files by path, which counts its requests."""

    def __init__(self):
        self.files, self.asked, self.length = {}, [], {}
        sources = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                sources.asked.append(self.path)
                content = sources.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(sources.length.get(self.path, len(content))))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def sources(monkeypatch):
    """A local source with one table, `small`, which is the whole catalogue."""
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    served = Sources()
    thread = threading.Thread(target=served.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.files["/small.csv"] = TABLE
    small = Dataset(
        "small", "two columns", 1000, "two/small.csv", f"{served.root}/small.csv", "own", len(TABLE),
        hashlib.sha256(TABLE).hexdigest(),
    )  # fmt: skip
    with_one(monkeypatch, small)
    yield served
    served.server.shutdown()
    served.server.server_close()
    thread.join()


def with_one(monkeypatch, *entries):
    """Make these tables the whole catalogue."""
    for name in list(CATALOGUE):
        monkeypatch.delitem(CATALOGUE, name)
    for entry in entries:
        monkeypatch.setitem(CATALOGUE, entry.name, entry)


def files_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_table_is_downloaded_once_and_found_afterwards(sources, tmp_path):
    path = fetch("small", tmp_path)

    assert tmp_path / "two" / "small.csv" == path == fetch("small", tmp_path) == find("small", tmp_path)
    assert TABLE == path.read_bytes()
    assert ["/small.csv"] == sources.asked
    assert ["two/small.csv"] == files_below(tmp_path)


def test_what_was_not_fetched_is_missing_and_the_command_is_named(sources, tmp_path):
    with pytest.raises(MissingDataError, match=r"python -m onlineic\.datasets fetch small"):
        find("small", tmp_path)

    assert [] == sources.asked


@pytest.mark.parametrize("content", [TABLE[:-1] + b"3", TABLE + b"1,2\n", TABLE[:-4], b""])
def test_a_source_that_has_changed_leaves_nothing_behind(sources, tmp_path, content):
    sources.files["/small.csv"] = content

    with pytest.raises(DigestMismatchError, match=r"small must have sha256 .* the source has changed"):
        fetch("small", tmp_path)

    assert [] == files_below(tmp_path)


def test_a_download_that_breaks_off_is_no_change_of_the_source(sources, tmp_path):
    sources.length["/small.csv"] = len(TABLE)
    sources.files["/small.csv"] = TABLE[:1000]

    with pytest.raises(DownloadError, match="1000 bytes read"):
        fetch("small", tmp_path)

    assert [] == files_below(tmp_path)


def test_a_source_without_the_file_is_named(sources, tmp_path):
    del sources.files["/small.csv"]

    with pytest.raises(DownloadError, match=rf"from {sources.root}/small\.csv, got HTTP Error 404"):
        fetch("small", tmp_path)


def test_without_a_network_the_error_says_where_the_file_may_be_put(sources, tmp_path, monkeypatch):
    with socket.socket() as free:  # bound, but nobody listens
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/small.csv"
        with_one(monkeypatch, attrs.evolve(CATALOGUE["small"], address=address))

        with pytest.raises(DownloadError, match=re.escape(str(tmp_path / "two" / "small.csv"))):
            fetch("small", tmp_path)


@pytest.mark.parametrize("call", [fetch, find])
def test_another_file_in_the_place_of_a_table_is_neither_used_nor_overwritten(sources, tmp_path, call):
    path = tmp_path / "two" / "small.csv"
    path.parent.mkdir()
    path.write_bytes(b"mine")

    with pytest.raises(DigestMismatchError, match="remove it and fetch again"):
        call("small", tmp_path)

    assert b"mine" == path.read_bytes()
    assert [] == sources.asked


@pytest.mark.parametrize("call", [fetch, find])
def test_a_name_that_is_not_in_the_catalogue_is_refused(sources, tmp_path, call):
    with pytest.raises(InvalidParameterError, match="name must be one of small, got name='large'"):
        call("large", tmp_path)


def test_a_write_that_fails_leaves_no_part_of_a_file(sources, tmp_path, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)

    with pytest.raises(OSError, match="No space"):
        fetch("small", tmp_path)

    assert [] == files_below(tmp_path)


def test_the_folder_is_the_named_one_else_in_the_cache(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.setenv("ONLINEIC_DATA", "/named")
    named = folder_of_data()
    monkeypatch.setenv("ONLINEIC_DATA", "")
    cache = folder_of_data()
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the specification
    relative = folder_of_data()
    monkeypatch.delenv("XDG_CACHE_HOME")
    home = folder_of_data()

    assert Path("/named") == named
    assert Path("/caches/onlineic") == cache
    assert Path("/home/someone/.cache/onlineic") == relative == home


def test_the_command_fetches_all_tables_and_lists_their_state(sources, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ONLINEIC_DATA", str(tmp_path))
    before = main(["list"]), capsys.readouterr().out
    fetched = main(["fetch"]), capsys.readouterr().out
    after = main(["list"]), capsys.readouterr().out
    (tmp_path / "two" / "small.csv").write_bytes(b"mine")
    other = main(["list"]), capsys.readouterr().out

    assert (0, f"small: {tmp_path / 'two' / 'small.csv'}\n") == fetched
    assert [0, 0, 0] == [before[0], after[0], other[0]]
    for fact in ("small: two columns", "1,000", f"{sources.root}/small.csv", "own"):
        assert fact in before[1]
    assert "not fetched" in before[1]
    assert f"here: {tmp_path}" in after[1]
    assert "another file is in its place" in other[1]


def test_the_command_goes_on_after_a_failure_and_says_so_by_its_status(sources, tmp_path, capsys):
    status = main(["fetch", "--folder", str(tmp_path), "large", "small"])

    out, err = capsys.readouterr()
    assert 2 == status
    assert out.startswith("small: ")
    assert err.startswith("large: error: name must be one of small")

    sources.files.clear()
    (tmp_path / "two" / "small.csv").unlink()

    assert 1 == main(["fetch", "--folder", str(tmp_path)])
    assert "small: error: the table small must be downloaded" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_an_error_without_a_traceback(sources, tmp_path, capsys):
    (tmp_path / "two").write_text("a file")

    assert 1 == main(["fetch", "--folder", str(tmp_path), "small"])
    assert f"small: error: {tmp_path / 'two'}: " in capsys.readouterr().err


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_address_names_a_commit_and_the_readme_says_what_the_catalogue_says(name):
    dataset = CATALOGUE[name]
    row = f"| `{name}` | {dataset.about} | {dataset.records:,} | {dataset.size:,} | {dataset.licence} |"

    assert name == dataset.name
    of_a_repository = r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/"
    assert re.match(rf"{of_a_repository}|https://archive\.ics\.uci\.edu/ml/", dataset.address)
    assert re.fullmatch("[0-9a-f]{64}", dataset.sha256)
    assert row in README.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_knows_the_external_file_by_its_digest(name, data_folder):
    if not (data_folder / CATALOGUE[name].path).is_file():
        pytest.skip(f"no {CATALOGUE[name].path} in the folder of external data")

    assert CATALOGUE[name].size == find(name, data_folder).stat().st_size
