"""What is too large, too wide, or no text is refused in words before it fills the memory."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import json
import lzma
import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from openpyxl.styles import PatternFill
from refusals import refusal, refuses

import lmemtest as lt
from lmemtest.bench.data import delimited, sheets
from lmemtest.bench.data.column import number_in
from lmemtest.bench.data.readers import open_table, read_table
from lmemtest.bench.importers.evaluation_samples import log_of
from lmemtest.errors import ArgumentError, DataError, MissingFileError

LINES = b"A,t1,0.5\n" * 20_000  # 0.18 MB
HEADER = b"algo,task,loss\n"
TOO_LARGE = (
    "{begin} 0.1 GB, the most that is read into memory. If it is meant to be so large, give Runs a lazy table, such as "
    "polars.scan_parquet(path) or polars.scan_csv(path); or set the environment variable LMEMTEST_MAX_GB to more "
    "gigabytes, with ten times as much memory."
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of 0.1 MB."""
    monkeypatch.setenv("LMEMTEST_MAX_GB", "0.0001")


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", data)
    return file.getvalue()


PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zip": zipped}


@pytest.mark.parametrize("suffix", PACK)
def test_what_unpacks_to_more_than_the_limit_is_refused_and_read_above_it(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(PACK[suffix](HEADER + LINES))
    assert path.stat().st_size < 0.02 * len(LINES)
    monkeypatch.setenv("LMEMTEST_MAX_GB", "0.0001")
    with pytest.raises(DataError) as error:
        read_table(path)
    begin = f"The file {str(path)!r}, unpacked, holds more than"
    assert str(error.value) == TOO_LARGE.format(begin=begin).replace("0.1 GB", "0.0001 GB")
    monkeypatch.setenv("LMEMTEST_MAX_GB", "0.001")
    assert read_table(path).shape == (20_000, 3)


def test_no_more_is_unpacked_than_the_limit(monkeypatch):
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return bytes(size)

    stream = Endless()
    monkeypatch.setenv("LMEMTEST_MAX_GB", "0.005")
    refuses(DataError, r"^Standard input holds more than 0\.005 GB", sheets.within_limit, stream, "Standard input")
    assert 5e6 < stream.given < 7e6


@pytest.mark.usefixtures("small")
def test_a_file_and_standard_input_have_the_limit(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(HEADER + LINES)
    refuses(DataError, r"a\.csv' holds more than 0\.0001 GB", read_table, path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(HEADER + LINES)))
    refuses(DataError, r"^Standard input holds more than 0\.0001 GB", read_table, "-")


@pytest.mark.parametrize("given", ["many", "0", "-1", "nan"])
def test_the_limit_is_a_positive_number(given, tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(HEADER)
    monkeypatch.setenv("LMEMTEST_MAX_GB", given)
    assert refusal(lambda: read_table(path), ArgumentError) == (
        f"The environment variable LMEMTEST_MAX_GB must be a number of gigabytes above 0, got {given!r}. Without it, "
        "the limit is 0.5."
    )


@pytest.mark.usefixtures("small")
def test_archives_that_unpack_to_more_are_refused_by_their_table_of_contents(tmp_path):
    book, log, scores = tmp_path / "a.xlsx", tmp_path / "a.eval", tmp_path / "a.npz"
    openpyxl.Workbook().save(book)
    with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/big.xml", bytes(200_000))
    with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", " " * 200_000 + "{}")
    np.savez_compressed(scores, A=np.zeros((100, 250)))
    for read, path in ((read_table, book), (log_of, log), (lt.importers.rliable, scores)):
        refuses(DataError, r"^The file '.*', unpacked, holds more than 0\.0001 GB", read, path)


def test_a_parquet_file_and_json_of_few_bytes_and_many_cells_are_refused(tmp_path, monkeypatch):
    packed, sparse, nested = tmp_path / "a.parquet", tmp_path / "a.jsonl", tmp_path / "a.json"
    pd.DataFrame({"algo": ["A"] * 30_000, "loss": 0.5}).to_parquet(packed)
    sparse.write_text("".join(f'{{"k{i}": 1}}\n' for i in range(300)))
    nested.write_text(json.dumps({f"c{i}": {f"r{i}{j}": 1 for j in range(3)} for i in range(150)}, indent=1))
    monkeypatch.setenv("LMEMTEST_MAX_GB", "0.0001")
    shapes = {packed: "30,000 rows of 2 columns", sparse: "300 rows of 300 columns", nested: "450 rows of 150 columns"}
    for path, shape in shapes.items():
        refuses(DataError, rf"holds {shape}, as text more than 0\.0001 GB", read_table, path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".json", ".jsonl", ".md"])
def test_a_table_with_too_many_columns_is_refused(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "MOST_COLUMNS", 30)
    path = tmp_path / f"a{suffix}"
    frame = pd.DataFrame({"task, or so": ["t1"], **{f"c{i}": [0.5] for i in range(30)}})
    rows = ["|".join(map(str, row)) for row in (frame.columns, ["-"] * 31, frame.iloc[0])]
    {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".parquet": lambda: frame.to_parquet(path),
        ".feather": lambda: frame.to_feather(path),
        ".json": lambda: frame.to_json(path, orient="records"),
        ".jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        ".md": lambda: path.write_text("\n".join(rows)),
    }[suffix]()
    assert refusal(lambda: read_table(path), DataError) == (
        f"The file {str(path)!r} has 31 columns; at most 30 are read. Write a row for each score, with columns for its "
        "algorithm, benchmark and seed (pandas.melt), or turn rows and columns around."
    )
    monkeypatch.setattr(delimited, "MOST_COLUMNS", 31)
    assert read_table(path).shape == (1, 31)


def test_a_file_of_one_line_is_no_table(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(bytes(2_000))
    with pytest.raises(DataError) as error:
        read_table(path)
    assert len(str(error.value)) < 600
    monkeypatch.setattr(delimited, "_LONGEST_HEADER", 1_000)
    refuses(DataError, r"has a first line of 2,000 characters, so it is no table with a header\.", read_table, path)


# ----------------------------------------------------------------------------------------------------------- sheets


def book_of(path: Path, *, far: str | None = None, coloured: int = 0) -> Path:
    """Two rows of runs, rows of coloured cells below them, and a cell far away that is coloured, too."""
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["algo", "task", "loss"], ["A", "t1", 0.5], ["B", "t1", 0.25]):
        sheet.append(row)
    fill = PatternFill("solid", fgColor="FFFF00")
    for place in range(coloured):
        sheet.cell(4 + place, 1).fill = fill
    if far:
        sheet[far].fill = fill
    book.save(path)
    return path


@pytest.mark.level(1)
def test_a_coloured_cell_at_the_end_of_a_sheet_adds_nothing_to_its_table(tmp_path):
    plain, far = book_of(tmp_path / "a.xlsx"), book_of(tmp_path / "b.xlsx", far="XFD1048576")
    tidy = open_table(far).tidy()
    assert tidy.remarks == ()
    pd.testing.assert_frame_equal(tidy.frame, read_table(plain))


def test_behind_many_coloured_cells_nothing_is_looked_for_and_that_is_said(tmp_path, monkeypatch):
    path = book_of(tmp_path / "a.xlsx", coloured=12)
    assert open_table(path).tidy().remarks == ()
    monkeypatch.setattr(sheets, "MOST_EMPTY", 100)  # each coloured row counts 11: its cell, and 10
    (remark,) = open_table(path).tidy().remarks
    assert remark.in_words() == "whatever stands below 10 empty rows left unread"
    assert read_table(path)["loss"].tolist() == [0.5, 0.25]


@pytest.mark.usefixtures("small")
def test_rows_of_one_far_cell_are_refused_before_they_fill_the_memory():
    class Sheet:
        def reset_dimensions(self) -> None: ...

        def iter_rows(self, values_only: bool) -> Iterator[tuple[int | None, ...]]:
            while values_only:
                yield (*[None] * 16_383, 1)

    with pytest.raises(DataError, match=r"holds 4 rows of 16,384 columns, as text more than 0\.0001 GB"):
        sheets.cells_of(Sheet(), "'a.xlsx'")


# ------------------------------------------------------------------------------------------- numbers, texts and paths

BIG = {310: "2" + "0" * 309, 5_000: "-" + "9" * 5_000}


@pytest.mark.parametrize("digits", BIG)
@pytest.mark.parametrize(
    ("name", "text", "where"), [("a.json", '[{"algo": "A", "loss": BIG}]', ""),
                                ("a.json", '{"algo": ["A"],\n"loss": [BIG]}', ""),
                                ("a.jsonl", '{"algo": "A", "loss": 1}\n{"algo": "A", "loss": BIG}', " in line 2")]
)  # fmt: skip
def test_a_whole_number_larger_than_any_float_is_refused(name, text, where, digits, tmp_path):
    path = tmp_path / name
    path.write_text(text.replace("BIG", f'"{BIG[digits]}"'))
    assert read_table(path)["loss"].iloc[-1] == BIG[digits]  # a name
    path.write_text(text.replace("BIG", BIG[digits]))
    assert refusal(lambda: read_table(path), DataError) == (
        f"The file {str(path)!r} holds a whole number of {digits:,} digits{where}, more than any float has. Write it "
        'as text ("...") if it is a name.'
    )


def test_half_a_character_is_refused_and_a_whole_one_is_read(tmp_path):
    path = tmp_path / "a.jsonl"
    for text in ('{"algo": "A\\ud83d", "loss": 1}', '{"al\\udfffgo": "A", "loss": 1}'):
        path.write_text(text)
        refuses(DataError, r"holds half of a character, \\ud(83d|fff) in line 1, which no text can", read_table, path)
    path.write_text('{"algo": "A\\ud83d\\ude00", "loss": 1}')
    assert read_table(path)["algo"].tolist() == ["A\N{GRINNING FACE}"]
    other = tmp_path / "a.csv"
    other.write_bytes(b"algo,loss\nA+2AA-,1\n")
    refuses(DataError, r"is not utf-7 text", read_table, other, encoding="utf-7")
    with pytest.raises(ArgumentError, match=r"^encoding must be the name of a text encoding such as .*, got 3\.$"):
        read_table(other, encoding=3)


def test_the_home_of_nobody_is_a_folder_that_does_not_exist():
    for read in (read_table, functools.partial(lt.importers.optuna, direction="minimize")):
        with pytest.raises(MissingFileError) as error:
            read("~nobody-of-this-name/a.csv")
        assert str(error.value) == (
            "There is no file '~nobody-of-this-name/a.csv': the folder '~nobody-of-this-name' does not exist."
        )


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device of Unix")
def test_a_link_to_a_device_is_no_file(tmp_path):
    path = tmp_path / "a.csv"
    os.symlink("/dev/zero", path)
    assert refusal(lambda: read_table(path), MissingFileError) == (
        f"path must be a file, but {str(path)!r} is a pipe or a device. Copy what it gives to a file."
    )


def test_long_cells_take_no_longer_than_they_are():
    assert number_in("1" * 50_000 + "x") is None  # the square of its length: minutes
    assert number_in("0." + "3" * 400) == ("plain", pytest.approx(1 / 3), pytest.approx(np.nan, nan_ok=True))
    assert sheets.markdown_tables("|a|b|\n|-|-|" + " " * 100_000 + "x\n|A|1|\n") == []
