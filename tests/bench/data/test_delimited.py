"""Exports of spreadsheets and other text: what the file says is read, what it leaves open is asked for."""

from __future__ import annotations

import bz2
import io
import lzma
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lmemtest.bench.data.readers import read_runs, read_table
from lmemtest.core.caller import on_command_line
from lmemtest.errors import ArgumentError, DataError, DataWarning

ROLES: dict[str, Any] = {"score": "Güte", "direction": "maximize", "algorithm": "Verfahren", "benchmark": "Aufgabe"}
FRAME = pd.DataFrame(
    {
        "Verfahren": ["Bäume", "Netz"] * 3,
        "Aufgabe": ["01", "01", "2", "2", "x;y", "x;y"],
        "Güte": [0.5, 1.25, -0.125, 2.0, 1e-3, 40.0],
        "n": [1, 2, 3, 4, 5, 6],
    }
)
GERMAN = FRAME.to_csv(index=False, sep=";", decimal=",")
PLAIN = FRAME.to_csv(index=False)


def same(path: Path, **options: Any) -> None:
    pd.testing.assert_frame_equal(read_runs(path, **ROLES, **options).to_frame(), FRAME)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(GERMAN.encode("utf-8-sig"), id="German Excel with a byte order mark"),
        pytest.param(GERMAN.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(("sep=;\n" + GERMAN).encode(), id="Excel's sep line"),
        pytest.param(FRAME.to_csv(index=False, sep="\t").encode("utf-16"), id="Unicode text of Excel"),
        pytest.param(FRAME.to_csv(index=False, sep="\t").encode("utf-16-le"), id="UTF-16 without a mark"),
        pytest.param(PLAIN.encode("utf-32"), id="UTF-32"),
        pytest.param(FRAME.to_csv(index=False, sep="|").encode(), id="bars"),
        pytest.param(FRAME.to_csv(index=False, decimal=",").encode(), id="quoted decimal commas"),
        pytest.param(("# made on Monday, by me\n#\n\n" + PLAIN).encode(), id="comments first"),
        pytest.param(PLAIN.encode(), id="plain"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".tsv"])
def test_exports_are_read_as_they_are(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"runs{suffix}"
    path.write_bytes(content)
    same(path)


@pytest.mark.parametrize(
    ("packed", "pack"),
    [(".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_packed_files(tmp_path: Path, packed: str, pack: Any) -> None:
    path = tmp_path / f"runs.csv{packed}"
    path.write_bytes(pack(GERMAN.encode()))
    same(path)
    path.write_bytes(pack(GERMAN.encode())[:-9])
    with pytest.raises(DataError, match="cannot be read as csv"):
        read_runs(path, **ROLES)


def test_zip_files(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("runs.csv", GERMAN)
        archive.writestr("__MACOSX/._runs.csv", "x")
    same(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.csv", GERMAN)
    with pytest.raises(DataError, match=r"holds 2 files \(runs.csv, more.csv\)"):
        read_runs(path, **ROLES)
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(DataError, match="cannot be read as csv"):
        read_runs(path, **ROLES)


def test_western_text_of_windows_is_read_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(GERMAN.encode("cp1252"))
    with pytest.warns(DataWarning, match="was read as Windows-1252"):
        same(path)
    same(path, encoding="latin-1")
    with pytest.raises(DataError, match="is not utf-8 text"):
        same(path, encoding="utf-8")
    with pytest.raises(ArgumentError, match="must be the name of a text encoding"):
        same(path, encoding="latin-99")
    path.write_bytes(GERMAN.encode() + b"\x81\xff")
    with pytest.raises(DataError, match="nor Windows-1252"):
        same(path)


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        (["0,5", "1,25"], [0.5, 1.25]),
        (["1,5", "2"], [1.5, 2.0]),
        ([",5", "-1,"], [0.5, -1.0]),
        (["1,5e-3", "2,0E2"], [0.0015, 200.0]),
        (["0,123", "0,456"], [0.123, 0.456]),
        (["1234,567", "1,000"], [1234.567, 1.0]),
        (["1,5", ""], [1.5, np.nan]),
        (["0,1", "NA"], [0.1, np.nan]),
        (["0,30000000000000004", "1,1"], [0.30000000000000004, 1.1]),
    ],
)
@pytest.mark.parametrize("sep", [";", "\t", ","])
def test_a_comma_that_can_only_be_decimal(tmp_path: Path, entries: list[str], wanted: list[float], sep: str) -> None:
    path = tmp_path / "a.csv"
    quote = '"' if sep == "," else ""
    path.write_text("\n".join([f"a{sep}x", *(f"k{i}{sep}{quote}{entry}{quote}" for i, entry in enumerate(entries))]))
    np.testing.assert_array_equal(read_table(path)["x"].to_numpy(dtype=float), wanted)


@pytest.mark.parametrize(
    ("entries", "advice"), [(["1,234", "5,678"], "commas may be for decimals or for thousands"),
                            (["11,612.78", "9,000.00"], "thousands"), (["1.234,5", "2.000,25"], "thousands"),
                            (["1.16%", "2"], "mixes percent signs")]
)  # fmt: skip
def test_numbers_in_doubt_are_not_read_but_explained(tmp_path: Path, entries: list[str], advice: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["tool;loss", *(f"k{i};{entry}" for i, entry in enumerate(entries))]))
    with pytest.raises(DataError, match=advice):
        read_runs(path, score="loss", direction="minimize", algorithm="tool")


def test_decimal_says_what_a_comma_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("tool;loss\na;1,234\nb;5,678\n")
    assert read_table(path, decimal=",")["loss"].tolist() == [1.234, 5.678]
    path.write_text("tool;loss;other\na;0,5;1,234\nb;5,678;1,111\n")  # one column settles the file
    assert read_table(path)["other"].tolist() == [1.234, 1.111]
    path.write_text("tool;loss;other\na;0,5;1.5\nb;5,678;1.25\n")
    with pytest.raises(DataError, match="has decimal commas in the column 'loss' and points in 'other'"):
        read_table(path)
    with pytest.raises(ArgumentError, match="decimal must be"):
        read_table(path, decimal=";")


def test_names_with_commas_stay_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("tool;task;loss\n0,5;1,0;0,25\n0,75;1,0;0,5\n")
    runs = read_runs(path, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    assert runs.algorithms == ("0,5", "0,75")
    assert runs.levels("task") == ("1,0",)


def test_a_separator_in_doubt_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b;c\n1,2;3\n4,5;6\n")
    with pytest.raises(DataError, match=r"may be separated by commas or semicolons. Say which: sep=','"):
        read_table(path)
    with on_command_line(), pytest.raises(DataError, match="Say which: --sep ','"):
        read_table(path)
    assert list(read_table(path, sep=";").columns) == ["a,b", "c"]
    path.write_text("tool loss\na 1\nb  2\n")
    with pytest.raises(DataError, match="If blanks separate its fields, give sep=' '"):
        read_table(path)
    assert read_table(path, sep=" ")["loss"].tolist() == [1, 2]
    path.write_text("tool\tloss\na\t1\n")
    assert list(read_table(path, sep="tab").columns) == ["tool", "loss"]
    for wrong in ("", "ab", 3, '"'):
        with pytest.raises(ArgumentError, match="sep must be one character or 'tab'"):
            read_table(path, sep=wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="must differ"):
        read_table(path, sep=",", decimal=",")


def test_a_name_with_a_hash_is_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("#tool,loss\na,1\nb,2\n")
    assert list(read_table(path).columns) == ["#tool", "loss"]


def test_files_with_a_wrong_suffix(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    FRAME.to_parquet(path)
    with pytest.raises(DataError, match=r"is not text. Is it a .parquet file"):
        read_table(path)
    path.write_text(" \n\n")
    with pytest.raises(DataError, match="is empty"):
        read_table(path)


def test_feather_and_decimals_of_arrow(tmp_path: Path) -> None:
    import decimal

    import pyarrow as pa
    from pyarrow import parquet

    FRAME.to_feather(tmp_path / "a.feather")
    same(tmp_path / "a.feather")
    whole = [decimal.Decimal(value) for value in (2**60, 1, 2)]
    long = [decimal.Decimal("0.10000000000000000001"), decimal.Decimal("0.1"), None]
    exact = [decimal.Decimal("0.10"), decimal.Decimal("2.50"), None]
    table = pa.table({"tool": ["a", "b", "a"], "loss": pa.array(exact, pa.decimal128(10, 2)),
                      "seed": pa.array(whole, pa.decimal128(38, 0)),
                      "id": pa.array(long)})  # fmt: skip
    parquet.write_table(table, tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet", labels=["id"])
    np.testing.assert_array_equal(found["loss"], [0.1, 2.5, np.nan])
    assert found["seed"].tolist() == [2**60, 1, 2]
    assert found["id"].tolist()[:2] == ["0.10000000000000000001", "0.10000000000000000000"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(GERMAN.encode(), id="text"),
        pytest.param(FRAME.to_json(orient="records").encode(), id="json"),
        pytest.param(FRAME.to_json(orient="records", lines=True).encode(), id="lines"),
        pytest.param(FRAME.to_parquet(), id="parquet"),
    ],
)
def test_standard_input(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    same(Path("-"))
    with pytest.raises(DataError, match="Standard input is empty"):
        same(Path("-"))


def test_spreadsheets(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "runs.xlsx"
    FRAME.to_excel(path, index=False)
    same(path)
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [["Verfahren", "Aufgabe", "Güte", "n"], ["a", 1, "0,5", 1], ["b", "01", "0,25", 2], [None] * 4]:
        sheet.append(row)
    book.create_sheet("empty")
    book.save(path)
    runs = read_runs(path, **ROLES)
    assert runs.levels("Aufgabe") == ("01", "1")
    assert runs.to_frame()["Güte"].tolist() == [0.5, 0.25]
    book.create_sheet("more").append(["x", "y"])
    book.save(path)
    with pytest.raises(ArgumentError, match=r"no sheet 'less'. Its sheets: 1 'Sheet', 2 'empty', 3 'more'"):
        read_runs(path, **ROLES, sheet="less")
    assert read_runs(path, **ROLES).notes == ("Read as: the sheet 'Sheet', one of 2.",)
    sheet["F3"] = 7
    del book["more"]
    book.save(path)
    with pytest.raises(DataError, match="has values in a column without a name, in 1 rows"):
        read_runs(path, **ROLES)
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(DataError, match="cannot be read as xlsx"):
        read_runs(path, **ROLES)


def test_without_openpyxl_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ArgumentError, match=r"pip install 'lmemtest\[excel\]'"):
        read_table(tmp_path / "a.xlsx")
