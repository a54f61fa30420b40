"""The download: complete or not at all. A server of our own answers."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lmemtest.bench.data import datasets
from lmemtest.compat.significance_analysis import download_priorband_data, tables
from lmemtest.errors import DownloadError

FILE = Path("dataset/priorband_data.parquet")


class Server(HTTPServer):
    answer: bytes = b""
    status: int = 200
    said_length: int | None = None
    calls: int = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.calls += 1
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(self.server.said_length or len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server(("127.0.0.1", 0), Handler) as running:
        monkeypatch.setattr(tables, "URL", f"http://127.0.0.1:{running.server_port}/file")
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


STUDY = pd.MultiIndex.from_product(
    [["a"], *datasets.STUDY_LEVELS.values(), range(2)], names=["benchmark", *datasets.STUDY_LEVELS, "seed"]
).to_frame(index=False)
STUDY["value"] = np.arange(len(STUDY), dtype=float)


@pytest.fixture
def parquet(tmp_path, monkeypatch) -> bytes:
    """A table of the study's form, with fewer rows, that is the one expected."""
    monkeypatch.setattr(datasets, "STUDY_ROWS", len(STUDY))
    monkeypatch.setattr(datasets, "STUDY_SHA256", datasets._sum_of(STUDY))
    path = tmp_path / "source.parquet"
    STUDY.to_parquet(path)
    content = path.read_bytes()
    path.unlink()
    return content


def test_the_address_is_the_peers():
    assert tables.URL == "https://api.figshare.com/v2/file/download/49732203"


def test_the_file_arrives_once(server, parquet):
    server.answer = parquet
    assert download_priorband_data() is None
    assert pd.read_parquet(FILE)["value"].tolist() == STUDY["value"].tolist()
    assert [path.name for path in FILE.parent.iterdir()] == [FILE.name]
    download_priorband_data()
    assert server.calls == 1


@pytest.mark.parametrize("answer", [b"<html>sorry</html>", b"", b"PAR1", b"PAR1 cut off"])
def test_what_is_no_parquet_file_is_not_saved(server, answer):
    server.answer = answer
    text = (
        f"{tables.URL} answered with {len(answer)} bytes that are not a complete parquet file, so nothing was saved. "
        "Download that address on a machine with a network and save the file as dataset/priorband_data.parquet."
    )
    with pytest.raises(DownloadError, match=f"^{re.escape(text)}$"):
        download_priorband_data()
    assert not FILE.parent.exists()


def test_a_table_with_another_sum_is_not_saved(server, parquet, monkeypatch):
    server.answer = parquet
    found = datasets.STUDY_SHA256
    monkeypatch.setattr(datasets, "STUDY_SHA256", "0" * 64)
    with pytest.raises(
        DownloadError, match=rf"{server.server_port}/file answered with was not saved\. .* is {found}, and 0{{64}} is"
    ):
        download_priorband_data()
    assert list(FILE.parent.iterdir()) == []


def test_another_table_is_not_saved(server, parquet, tmp_path):  # noqa: ARG001
    other = tmp_path / "other.parquet"
    STUDY.drop(columns="seed").to_parquet(other)
    server.answer = other.read_bytes()
    with pytest.raises(DownloadError, match=r"is not the PriorBand table: columns \['seed'\] are missing"):
        download_priorband_data()
    assert list(FILE.parent.iterdir()) == []


def test_an_error_of_the_server(server):
    server.status = 503
    with pytest.raises(DownloadError, match=r"could not download .* \(HTTP Error 503: Service Unavailable\)"):
        download_priorband_data()
    assert not FILE.parent.exists()


def test_an_answer_that_breaks_off(server, parquet):
    server.answer, server.said_length = parquet[:-10], len(parquet)
    with pytest.raises(DownloadError):
        download_priorband_data()
    assert not FILE.exists()


@pytest.mark.usefixtures("server")
def test_no_network(monkeypatch):
    monkeypatch.setattr(tables, "URL", "http://127.0.0.1:1/file")
    text = "could not download the PriorBand table from http://127.0.0.1:1/file ("
    with pytest.raises(DownloadError, match=f"^{re.escape(text)}") as caught:
        download_priorband_data()
    assert isinstance(caught.value, OSError)


def test_a_disk_that_fails_leaves_nothing(server, parquet, monkeypatch):
    server.answer = parquet

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(tables.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        download_priorband_data()
    assert list(FILE.parent.iterdir()) == []
