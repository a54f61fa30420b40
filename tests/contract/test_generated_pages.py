"""Tables on pages that are made of something else, and are as what they are made of.

A mark on a page, ``<!-- made of KIND ... -->``, says of what the table below it is made:

    arguments tuning.curve k level     of the signature and the docstring of `lt.tuning.curve`
    options where failed               of the table of options of the command line
    validation Fits                    of the rows of this section in tests/reference/validation.csv; what simulations
                                       saw, where no row says more, of tests/simulation/rates.csv

Run as a program (`make pages` does), it writes the tables.
"""

from __future__ import annotations

import csv
import inspect
import re
from collections import defaultdict
from pathlib import Path

import lmemtest as lt
from lmemtest.cli.options import OPTIONS, flags

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/developers").glob("*.md"))]
RECORD = ROOT / "tests" / "reference" / "validation.csv"
RATES = ROOT / "tests" / "simulation" / "rates.csv"
TABLE = re.compile(r"^<!-- made of (?P<kind>\w+) (?P<what>.+) -->\n\n?(?P<table>(?:\|.*\n)*)", re.MULTILINE)
TEST = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>\w+)`")

# What the columns of the record are called, by what a section is a record of.
COMPARED = {
    "what": "quantity",
    "reference": "reference",
    "values": "values",
    "seen": "largest difference",
    "test": "test",
}
SIMULATED = {
    "what": "what",
    "values": "tables",
    "reference": "should be",
    "seen": "seen",
    "allowed": "allowed",
    "test": "test",
}
PROVED = {"what": "claim", "test": "test"}
SIMULATIONS, PROOFS = ("Simulated error rates and coverages", "Checks and studies"), ("Checked in other ways",)


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    """A table in markdown; a bar in a cell is no border."""
    lines = [headings, ["---"] * len(headings), *([re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in row] for row in rows)]
    return (
        "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)
        .replace("| --- ", "|---")
        .replace("|--- |", "|---|")
    )


def arguments(function: str, names: list[str]) -> str:
    """The arguments of a function: what may be given, and what it means."""
    owner, _, name = function.rpartition(".")
    called = getattr(lt.lmm if owner == "fit" else getattr(lt, owner) if owner else lt, name)
    section = re.search(r"\nParameters\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+\n|\Z)", inspect.getdoc(called), re.DOTALL)[1]
    described: dict[str, tuple[str, str]] = {}
    for entry in re.split(r"\n(?=\S)", section):
        head, _, text = entry.partition("\n")
        several, _, kind = head.partition(" : ")
        for one in several.split(", "):
            described[one] = kind, " ".join(text.split())
    assert set(names) <= set(inspect.signature(called).parameters), function
    rows = [[f"`{name}`", *(re.sub("``", "`", part) for part in described[name])] for name in names]
    return markdown(["argument", "what it takes", "meaning"], rows)


def options(names: list[str]) -> str:
    """Options of the command line, as its help has them."""
    rows = []
    for name in names:
        _, metavar, text = OPTIONS[name]
        rows.append([f"`{' '.join(filter(None, (flags(name)[0], metavar)))}`", text])
    return markdown(["option", "what it does"], rows)


def record(path: Path = RECORD) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rates_of(tests: str) -> str:
    """The least and the largest share that these tests saw, by what they held it against, in percent."""
    names, shares = {test[0].strip("`") for test in TEST.finditer(tests)}, defaultdict(list)
    for row in record(RATES):
        if row["test"].partition("[")[0] in names:
            shares[row["rule"]].append(100.0 * float(row["share"]))
    ranges = {rule: sorted({f"{share:.1f}" for share in (min(of), max(of))}, key=float) for rule, of in shares.items()}
    if len(ranges) == 1:
        return f"{' to '.join(*ranges.values())} %"
    return "; ".join(
        f"{' to '.join(ends)} % ({rule.rpartition(' ')[0]} {100.0 * float(rule.split()[-1]):.3g})"
        for rule, ends in ranges.items()
    )


def validation(section: str) -> str:
    """A section of the record of validation."""
    headings = SIMULATED if section in SIMULATIONS else PROVED if section in PROOFS else COMPARED
    rows = [row for row in record() if row["section"] == section]
    for row in rows if section in SIMULATIONS else []:
        row["seen"] = row["seen"] or rates_of(row["test"])
    assert rows, f"no row of the record is of {section!r}"
    kept = [column for column in headings if any(row[column] for row in rows)]
    return markdown([headings[column] for column in kept], [[row[column] for column in kept] for row in rows])


def made_of(kind: str, what: str) -> str:
    if kind == "validation":
        return validation(what)
    first, *others = what.split()
    return arguments(first, others) if kind == "arguments" else options([first, *others])


def renewed(text: str) -> str:
    """The page with its tables as they should be."""
    return TABLE.sub(
        lambda mark: f"<!-- made of {mark['kind']} {mark['what']} -->\n\n{made_of(mark['kind'], mark['what'])}", text
    )


def test_tables_of_the_pages_are_those_that_they_are_made_of() -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES}
    old = [path.name for path, text in pages.items() if renewed(text) != text]
    assert old == [], "`make pages` writes them"
    assert sum(len(TABLE.findall(text)) for text in pages.values()) >= 15


def test_every_row_of_the_record_is_on_the_page_and_has_a_test() -> None:
    page = (ROOT / "docs" / "developers" / "validation.md").read_text(encoding="utf-8")
    shown = {mark["what"] for mark in TABLE.finditer(page) if mark["kind"] == "validation"}
    assert {row["section"] for row in record()} == shown
    missing = []
    for row in record():
        tests = list(TEST.finditer(row["test"]))
        missing += [] if tests else [f"{row['what']}: no test"]
        for test in tests:
            file = ROOT / test["file"]
            if not file.is_file() or f"def {test['name']}(" not in file.read_text(encoding="utf-8"):
                missing.append(f"{row['what']}: {test[0]}")
    assert missing == []


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
