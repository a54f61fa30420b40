"""Files are read by their suffix; what is wrong with a file is said in its own terms."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from refusals import refusal

from lmemtest.bench.data.readers import read_runs, read_table
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

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
    assert refusal(lambda: read_runs(tmp_path / "run.csv", **ROLES), FileNotFoundError) == (
        f"There is no file 'run.csv' in the folder '{tmp_path}'. Did you mean 'runs.csv'?"
    )
    with pytest.raises(FileNotFoundError, match=r"Files there that can be read: runs.csv\."):
        read_runs(tmp_path / "zzzzzzzzzzzz.parquet", **ROLES)
    with pytest.raises(FileNotFoundError, match=r"the folder '.*nowhere' does not exist"):
        read_runs(tmp_path / "nowhere" / "runs.csv", **ROLES)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as error:
        read_runs(tmp_path / "runs.orc", **ROLES)
    assert str(error.value).startswith("path must end in one of .parquet, .pq, .feather, .csv, .tsv, .txt, .xlsx, ")
    assert "(perhaps with .gz, .bz2, .xz, .zip behind), got 'runs.orc'. Any other format: read it" in str(error.value)
    with pytest.raises(ArgumentError, match=r"Save it as .xlsx or .csv"):
        read_runs("runs.xls", **ROLES)
    with pytest.raises(ArgumentError, match="is a folder"):
        read_runs(tmp_path, **ROLES)
    folder = tmp_path / "x.csv"
    folder.mkdir()
    with pytest.raises(FileNotFoundError, match="is a folder"):
        read_runs(folder, **ROLES)
    for wrong in (None, 3, b"runs.csv"):
        with pytest.raises(ArgumentError, match="path must be a path, got"):
            read_runs(wrong, **ROLES)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_runs(tmp_path / f"{'a' * 300}.csv", **ROLES)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        read_runs(tmp_path / name, **ROLES)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv.gz", "a.jsonl.gz"])
def test_a_damaged_file(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"cannot be read as .* Is it complete, and its suffix right\?"):
        read_runs(path, **ROLES)
    path.write_bytes(b"this is something else")
    with pytest.raises(DataError, match="cannot be read as"):
        read_runs(path, **ROLES)


def test_other_csv_trouble(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("tool\nHB\nRS\n")
    with pytest.raises(DataError, match="runs need at least a score and an algorithm"):
        read_runs(path, **ROLES)
    path.write_text("tool,loss,loss\nHB,1,2\nRS,1,2\n")
    with pytest.raises(DataError, match="more than one column named 'loss'"):
        read_runs(path, **ROLES)
    path.write_text("tool,loss\nHB,1\nRS,1,2,3\n")
    with pytest.raises(DataError, match=r"cannot be read as csv .*line 3"):
        read_runs(path, **ROLES)
    path.write_text("tool,seed,loss\n")
    with pytest.raises(DataError, match="The table has no rows"):
        read_runs(path, **ROLES)
    path.write_text("tool,seed,loss\nHB,0,0.5\nHB,1,failed\nRS,0,0.25\nRS,1,0.125\n")
    with pytest.raises(DataError, match=r"1 cell of 4 holds words \('failed' 1\)\. .*: failed='failed'"):
        read_runs(path, **ROLES)
    with pytest.raises(UnknownColumnError, match="Did you mean 'loss'"):
        read_runs(path, **{**ROLES, "score": "Loss"})


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
    with pytest.raises(DataError, match="The column 'prior' has 1 missing value"):
        read_runs(path, **ROLES, metafeatures=["prior"])


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
        with pytest.raises(DataError, match="has 2 missing values"):
            read_runs(path, **roles)
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
    path.write_text("tool,seed,loss\na,0,1\nb,NA,2\n")
    with pytest.raises(DataError, match="The column 'seed' has 1 missing value"):
        read_runs(path, **ROLES)


def test_a_broken_json_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"tool": t, "seed": 0, "loss": 0.1}) for t in ("HB", "RS", "TPE")]
    path.write_text("\n".join([lines[0], "", lines[1], lines[2][:-5]]))
    with pytest.raises(DataError) as error:
        read_runs(path, **ROLES)
    assert "is not valid JSON in line 4 (" in str(error.value)
    assert repr(lines[2][:-5]) in str(error.value)
    path.write_text("\n".join([lines[0], "[1, 2]"]))
    with pytest.raises(DataError, match=r"holds list \[1, 2\] in line 2; each line must be an object"):
        read_runs(path, **ROLES)
    path.write_text(f"[{lines[0]}, {lines[1]}")
    with pytest.raises(DataError, match="is not valid JSON in line 1"):
        read_runs(path, **ROLES)
    path.write_text(f"[{lines[0]}, 3]")
    with pytest.raises(DataError, match="must be a list of objects, one per run"):
        read_runs(path, **ROLES)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is not UTF-8 text"):
        read_runs(path, **ROLES)


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
