"""Files are read by their suffix; what is wrong with a file is said in its own terms."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refusal, refuses

from lmemtest.bench.data.readers import read_runs, read_table
from lmemtest.core.caller import on_command_line
from lmemtest.errors import ArgumentError, DataError, DataWarning, UnknownColumnError

ROLES: dict[str, Any] = {"score": "loss", "direction": "minimize", "algorithm": "tool", "seed": "seed"}
FRAME = pd.DataFrame({"tool": ["HB", "RS"] * 3, "seed": [0, 0, 1, 1, 2, 2], "loss": [0.5, 1.5, 0.25, 2, 3, 4]})


def write(folder: Path, name: str) -> Path:
    path = folder / name
    if "parquet" in name or ".pq" in name:
        FRAME.to_parquet(path)
    elif ".csv" in name.lower():
        FRAME.to_csv(path, index=False)
    else:
        FRAME.to_json(path, orient="records", lines=not name.startswith("list"))
    return path


@pytest.mark.parametrize(
    "name", [*("a.parquet", "a.pq", "a.csv", "a.CSV", "a b.csv.gz", "a.jsonl", "a.ndjson", "a.json", "list.json"),
             *("a.jsonl.gz", "list.json.gz")]
)  # fmt: skip
def test_every_format_gives_the_same_runs(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    runs = read_runs(path, **ROLES)
    pd.testing.assert_frame_equal(runs.to_frame(), FRAME)
    assert read_runs(str(path), **ROLES).roles() == runs.roles()


def test_a_missing_file_suggests_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, "runs.csv")
    (tmp_path / "notes.doc").write_text("x")
    (tmp_path / "x.csv").mkdir()
    for name, words in (
        ("run.csv", f"There is no file 'run.csv' in the folder '{tmp_path}'. Did you mean 'runs.csv'?"),
        ("zzzzzzzzzzzz.parquet", "Files there that can be read: runs.csv."),
        ("nowhere/runs.csv", "nowhere' does not exist"),
        ("x.csv", "is a folder"),
        (f"{'a' * 300}.csv", "There is no file"),
    ):
        assert words in refusal(lambda name=name: read_runs(tmp_path / name, **ROLES), FileNotFoundError)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    words = refusal(lambda: read_runs(tmp_path / "runs.orc", **ROLES))
    assert words.startswith("path must end in one of .parquet, .pq, .feather, .csv, .tsv, .txt, .xlsx, ")
    assert "(perhaps with .gz, .bz2, .xz, .zip behind), got 'runs.orc'. Any other format: read it" in words
    assert "Save it as .xlsx or .csv" in refusal(lambda: read_runs("runs.xls", **ROLES))
    assert "is a folder" in refusal(lambda: read_runs(tmp_path, **ROLES))
    for wrong in (None, 3, b"runs.csv"):
        assert "path must be a path, got" in refusal(lambda wrong=wrong: read_runs(wrong, **ROLES))


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    refuses(DataError, "is empty", read_runs, tmp_path / name, **ROLES)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv.gz", "a.jsonl.gz"])
def test_a_damaged_file(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    path.write_bytes(path.read_bytes()[:-20])
    refuses(DataError, r"cannot be read as .* Is it complete, and its suffix right\?", read_runs, path, **ROLES)
    path.write_bytes(b"this is something else")
    refuses(DataError, "cannot be read as", read_runs, path, **ROLES)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("tool\nHB\nRS\n", DataError, "runs need at least a score and an algorithm"),
        ("tool,loss,loss\nHB,1,2\nRS,1,2\n", DataError, "more than one column named 'loss'"),
        ("tool,loss\nHB,1\nRS,1,2,3\n", DataError, r"cannot be read as csv .*line 3"),
        ("tool,seed,loss\n", DataError, "The table has no rows"),
        ("tool,seed,loss\nHB,0,0.5\nHB,1,failed\nRS,0,0.25\nRS,1,0.125\n", DataError,
         r"1 cell of 4 holds words \('failed' 1\)\. .*: failed='failed'"),
        ("tool,seed,Loss\nHB,0,0.5\nRS,0,0.25\n", UnknownColumnError, "Did you mean 'Loss'"),
        ("tool,seed,loss\na,0,1\nb,NA,2\n", DataError, "The column 'seed' has 1 missing value"),
    ],
)  # fmt: skip
def test_other_csv_trouble(tmp_path: Path, text: str, error: type[Exception], words: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    refuses(error, words, read_runs, tmp_path / "a.csv", **ROLES)


def test_a_csv_from_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbftool,seed,loss,acc.1\r\nHB,0,0.5,1\r\nRS,0,0.25,2\r\n")
    assert read_runs(path, **ROLES).columns == ("tool", "seed", "loss", "acc.1")


def test_levels_called_none_are_levels_and_scores_called_none_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("tool,seed,prior,loss\nNA,0,None,0.5\nRS,0,good,None\nRS,1,None,\nNA,1,good,nan\n")
    runs = read_runs(path, **ROLES, metafeatures="prior")
    assert runs.levels("prior") == ("None", "good")
    assert runs.algorithms == ("NA", "RS")
    assert runs.check(rules_only=True).findings[0].kind == "non_finite"
    path.write_text("tool,seed,prior,loss\nHB,0,,0.5\nRS,0,good,1\n")
    refuses(DataError, "The column 'prior' has 1 missing value", read_runs, path, **ROLES, metafeatures=["prior"])


@pytest.mark.daily(20)
@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (["01", "1", "2"], ("01", "1", "2")),
        (["1e3", "1000"], ("1000", "1e3")),
        (["08", "8"], ("08", "8")),
        (["1", "1.0"], ("1", "1.0")),
        (["0.0", "-0.0"], ("-0.0", "0.0")),
        (["0.10", "0.5"], ("0.10", "0.5")),
        (["+1", "2"], ("+1", "2")),
        (["1_0", "2"], ("1_0", "2")),
        (["nan", "inf"], ("inf", "nan")),
        (["9007199254740993", "0.5"], ("0.5", "9007199254740993")),
        (["99999999999999999999", "1"], ("1", "99999999999999999999")),
        (["10", "9", "-2"], (-2, 9, 10)),
        (["9007199254740993", "9007199254740992"], (9007199254740992, 9007199254740993)),
        (["0.5", "1", "2"], (0.5, 1.0, 2.0)),
        (["True", "False"], (False, True)),
    ],
)
@pytest.mark.parametrize("role", ["algorithm", "benchmark", "seed", "metafeatures"])
def test_names_in_a_csv_stay_apart(tmp_path: Path, role: str, names: list[str], levels: tuple[Any, ...]) -> None:
    path = tmp_path / "a.csv"
    lines = [f"{tool},{name},{i}" for i, name in enumerate(names) for tool in ("HB", "RS")]
    path.write_text("\n".join(["tool,name,loss", *lines]))
    roles: dict[str, Any] = {"score": "loss", "direction": "minimize", "algorithm": "tool", role: "name"}
    if role == "seed" and "nan" in names:  # only of a seed a missing number
        refuses(DataError, "has 2 missing values", read_runs, path, **roles)
        return
    runs = read_runs(path, **roles)
    assert runs.levels("name") == levels
    assert [type(level) for level in runs.levels("name")] == [type(level) for level in levels]


def test_numbers_that_are_no_names_are_read_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [f"{tool},{seed},1e{budget},{seed}" for tool in ("a", "b") for seed in range(50) for budget in (0, 1)]
    path.write_text("\n".join(["tool,seed,epochs,loss", *lines]))
    runs = read_runs(path, **ROLES, budget="epochs")
    assert runs.levels("seed") == tuple(range(50))
    assert runs.levels("epochs") == (1.0, 10.0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"tool": "HB"}\n\n{"tool": "RS"}\n{"tool": "TPE", ',
         r"is not valid JSON in line 4 \(.*\{\"tool\": \"TPE\", "),
        ('{"tool": "HB"}\n[1, 2]', r"holds list \[1, 2\] in line 2; each line must be an object"),
        ('[{"tool": "HB"}, {"tool": "RS"}', "is not valid JSON in line 1"),
        ('[{"tool": "HB"}, 3]', "must be a list of objects, one per run"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
    ],
)  # fmt: skip
def test_a_broken_json_line_is_named(tmp_path: Path, content: Any, words: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refuses(DataError, words, read_runs, path, **ROLES)


def test_json_of_python_may_hold_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write('{"tool": "HB", "seed": 0, "loss": NaN}\n{"tool": "RS", "seed": 0, "loss": 1.0}\n')
    assert read_runs(path, **ROLES).check(rules_only=True).findings[0].kind == "non_finite"


def test_json_lines_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "a.jsonl"
    texts = ["one\u2028two", "three\u0085four", "five\x0bsix"]
    lines = [json.dumps({"text": text, "loss": i}, ensure_ascii=False) for i, text in enumerate(texts)]
    path.write_bytes("\r\n".join(lines).encode())
    assert read_table(path)["text"].tolist() == texts


# ---------------------------------------------------------------------- delimited text


GERMAN_ROLES: Any = {"score": "Güte", "direction": "maximize", "algorithm": "Verfahren", "benchmark": "Aufgabe"}
UNITS = pd.DataFrame(
    {"Verfahren": ["Bäume", "Netz"] * 3, "Aufgabe": ["01", "01", "2", "2", "x;y", "x;y"],
     "Güte": [0.5, 1.25, -0.125, 2.0, 1e-3, 40.0], "n": [1, 2, 3, 4, 5, 6]}
)  # fmt: skip
GERMAN = UNITS.to_csv(index=False, sep=";", decimal=",")
PLAIN = UNITS.to_csv(index=False)


def same(path: Path, **options: Any) -> None:
    pd.testing.assert_frame_equal(read_runs(path, **GERMAN_ROLES, **options).to_frame(), UNITS)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(GERMAN.encode("utf-8-sig"), id="German Excel with a byte order mark"),
        pytest.param(GERMAN.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(("sep=;\n" + GERMAN).encode(), id="Excel's sep line"),
        pytest.param(UNITS.to_csv(index=False, sep="\t").encode("utf-16"), id="Unicode text of Excel"),
        pytest.param(UNITS.to_csv(index=False, sep="\t").encode("utf-16-le"), id="UTF-16 without a mark"),
        pytest.param(PLAIN.encode("utf-32"), id="UTF-32"),
        pytest.param(UNITS.to_csv(index=False, sep="|").encode(), id="bars"),
        pytest.param(UNITS.to_csv(index=False, decimal=",").encode(), id="quoted decimal commas"),
        pytest.param(("# made on Monday, by me\n#\n\n" + PLAIN).encode(), id="comments first"),
        pytest.param(PLAIN.encode(), id="plain"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".txt", ".tsv"])
def test_exports_are_read_as_they_are(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"runs{suffix}"
    path.write_bytes(content)
    same(path)


@pytest.mark.parametrize(("packed", "pack"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_packed_files(tmp_path: Path, packed: str, pack: Any) -> None:
    path = tmp_path / f"runs.csv{packed}"
    path.write_bytes(pack(GERMAN.encode()))
    same(path)
    path.write_bytes(pack(GERMAN.encode())[:-9])
    refuses(DataError, "cannot be read as csv", read_runs, path, **GERMAN_ROLES)


def test_zip_files(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("runs.csv", GERMAN)
        archive.writestr("__MACOSX/._runs.csv", "x")
    same(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.csv", GERMAN)
    refuses(DataError, r"holds 2 files \(runs.csv, more.csv\)", read_runs, path, **GERMAN_ROLES)
    path.write_bytes(b"PK\x03\x04 nothing")
    refuses(DataError, "cannot be read as csv", read_runs, path, **GERMAN_ROLES)


def test_western_text_of_windows_is_read_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(GERMAN.encode("cp1252"))
    with pytest.warns(DataWarning, match="was read as Windows-1252"):
        same(path)
    same(path, encoding="latin-1")
    refuses(DataError, "is not utf-8 text", same, path, encoding="utf-8")
    refuses(ArgumentError, "must be the name of a text encoding", same, path, encoding="latin-99")
    path.write_bytes(GERMAN.encode() + b"\x81\xff")
    refuses(DataError, "nor Windows-1252", same, path)


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
    refuses(DataError, advice, read_runs, path, score="loss", direction="minimize", algorithm="tool")


def test_decimal_says_what_a_comma_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("tool;loss\na;1,234\nb;5,678\n")
    assert read_table(path, decimal=",")["loss"].tolist() == [1.234, 5.678]
    path.write_text("tool;loss;other\na;0,5;1,234\nb;5,678;1,111\n")  # one column settles the file
    assert read_table(path)["other"].tolist() == [1.234, 1.111]
    path.write_text("tool;loss;other\na;0,5;1.5\nb;5,678;1.25\n")
    refuses(DataError, "has decimal commas in the column 'loss' and points in 'other'", read_table, path)
    refuses(ArgumentError, "decimal must be", read_table, path, decimal=";")


def test_names_with_commas_stay_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("tool;task;loss\n0,5;1,0;0,25\n0,75;1,0;0,5\n")
    runs = read_runs(path, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    assert runs.algorithms == ("0,5", "0,75")
    assert runs.levels("task") == ("1,0",)


def test_a_separator_in_doubt_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b;c\n1,2;3\n4,5;6\n")
    refuses(DataError, r"may be separated by commas or semicolons. Say which: sep=','", read_table, path)
    with on_command_line(), pytest.raises(DataError, match="Say which: --sep ','"):
        read_table(path)
    assert list(read_table(path, sep=";").columns) == ["a,b", "c"]
    path.write_text("tool loss\na 1\nb  2\n")
    refuses(DataError, "If blanks separate its fields, give sep=' '", read_table, path)
    assert read_table(path, sep=" ")["loss"].tolist() == [1, 2]
    path.write_text("tool\tloss\na\t1\n")
    assert list(read_table(path, sep="tab").columns) == ["tool", "loss"]
    for wrong in ("", "ab", 3, '"'):
        refuses(ArgumentError, "sep must be one character or 'tab'", read_table, path, sep=wrong)
    refuses(ArgumentError, "must differ", read_table, path, sep=",", decimal=",")


def test_a_name_with_a_hash_is_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("#tool,loss\na,1\nb,2\n")
    assert list(read_table(path).columns) == ["#tool", "loss"]


def test_files_with_a_wrong_suffix(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    UNITS.to_parquet(path)
    refuses(DataError, r"is not text. Is it a .parquet file", read_table, path)
    path.write_text(" \n\n")
    refuses(DataError, "is empty", read_table, path)


def test_feather_and_decimals_of_arrow(tmp_path: Path) -> None:
    import decimal

    import pyarrow as pa
    from pyarrow import parquet

    UNITS.to_feather(tmp_path / "a.feather")
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
        pytest.param(UNITS.to_json(orient="records").encode(), id="json"),
        pytest.param(UNITS.to_json(orient="records", lines=True).encode(), id="lines"),
        pytest.param(UNITS.to_parquet(), id="parquet"),
    ],
)
def test_standard_input(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    same(Path("-"))
    refuses(DataError, "Standard input is empty", same, Path("-"))


def test_spreadsheets(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "runs.xlsx"
    UNITS.to_excel(path, index=False)
    same(path)
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [["Verfahren", "Aufgabe", "Güte", "n"], ["a", 1, "0,5", 1], ["b", "01", "0,25", 2], [None] * 4]:
        sheet.append(row)
    book.create_sheet("empty")
    book.save(path)
    runs = read_runs(path, **GERMAN_ROLES)
    assert runs.levels("Aufgabe") == ("01", "1")
    assert runs.to_frame()["Güte"].tolist() == [0.5, 0.25]
    book.create_sheet("more").append(["x", "y"])
    book.save(path)
    with pytest.raises(ArgumentError, match=r"no sheet 'less'. Its sheets: 1 'Sheet', 2 'empty', 3 'more'"):
        read_runs(path, **GERMAN_ROLES, sheet="less")
    assert read_runs(path, **GERMAN_ROLES).notes == ("Read as: the sheet 'Sheet', one of 2.",)
    sheet["F3"] = 7
    del book["more"]
    book.save(path)
    refuses(DataError, "has values in a column without a name, in 1 rows", read_runs, path, **GERMAN_ROLES)
    path.write_bytes(b"PK\x03\x04 nothing")
    refuses(DataError, "cannot be read as xlsx", read_runs, path, **GERMAN_ROLES)


def test_without_openpyxl_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    refuses(ArgumentError, r"pip install 'lmemtest\[excel\]'", read_table, tmp_path / "a.xlsx")
