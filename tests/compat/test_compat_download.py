"""The download: complete or not at all; what arrives is checked by `fetch_priorband` (tests/bench/data)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from refusals import refuses
from study import make_runs

from lmemtest.compat.significance_analysis import download_priorband_data, tables
from lmemtest.errors import DownloadError

FILE = Path("dataset/priorband_data.parquet")


@pytest.fixture
def network(tmp_path, monkeypatch) -> list[str]:
    """What was asked of the network, in a folder without the file."""
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    monkeypatch.setattr(tables, "fetch_priorband", lambda *, select: asked.append(select) or make_runs())
    return asked


def test_the_file_arrives_once(network):
    assert download_priorband_data() is None
    pd.testing.assert_frame_equal(pd.read_parquet(FILE), make_runs().to_frame())
    assert [path.name for path in FILE.parent.iterdir()] == [FILE.name]
    download_priorband_data()
    assert network == ["all"]


def test_what_is_no_table_is_not_saved(network, monkeypatch):  # noqa: ARG001
    def fail(*, select: str) -> None:
        raise DownloadError(f"no network for {select}")

    monkeypatch.setattr(tables, "fetch_priorband", fail)
    refuses(DownloadError, "no network", download_priorband_data)
    assert not FILE.parent.exists()


def test_a_disk_that_fails_leaves_nothing(network, monkeypatch):  # noqa: ARG001
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(tables.os, "replace", fail)
    refuses(OSError, "disk full", download_priorband_data)
    assert list(FILE.parent.iterdir()) == []
