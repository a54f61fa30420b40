"""The pieces of a paper say what the decisions say, compile, and replace nothing that is not theirs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx

from lmemtest.core.table import ResultTable
from lmemtest.core.tex import tex_text
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.means.comparisons import intervals_text
from lmemtest.report import paper
from lmemtest.report.analysis import Analysis, analyze
from lmemtest.report.document import plain
from lmemtest.report.files import PAPER_FILES
from lmemtest.report.methods import cited_in, methods_paragraph
from lmemtest.report.sources import SOURCES, bibtex
from lmemtest.report.wording import answer

Make = Callable[..., Any]
HOSTILE = (
    "a_{\\input{x}} % & <b>$x$</b> `**c**` | \\end{table}",
    "🚀 fast--net #1",
    "مرحبا",
    f"Mächler ő 中文 {'long_' * 12}",
    "",
)


@pytest.fixture(scope="module")
def hostile(table: Make, as_runs: Make) -> Analysis:
    frame = table(HOSTILE[:4], seeds=2).rename(columns={"loss": "100%_$loss\\"})
    return analyze(as_runs(frame, score="100%_$loss\\"))


@pytest.fixture(scope="module")
def pieces(three: Analysis) -> dict[str, str]:
    files = paper.paper_files(three, lambda _: None)
    assert tuple(files) == PAPER_FILES
    return {name: content.decode() for name, content in files.items() if not name.endswith(".pdf")}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of the time."""
    monkeypatch.setattr("lmemtest.report.paper.image_of", lambda *_: b"%PDF")


# ------------------------------------------------------------------------------------------------------ numbers


def test_differences_to_the_best_are_those_of_the_pairs(three: Analysis, as_runs: Make, table: Make) -> None:
    upwards = analyze(as_runs(table().assign(loss=lambda frame: -frame["loss"]), direction="maximize"))
    for analysis, sign in ((three, 1.0), (upwards, -1.0)):
        found, means = paper.differences_to_best(analysis).table, analysis.to_frame()
        assert found["right"].unique().tolist() == ["A"]
        assert found["left"].tolist() == means["algorithm"].tolist()[1:]
        assert found["estimate"].to_numpy() == approx(means["emmean"].to_numpy()[1:] - means["emmean"][0])
        assert (sign * found["estimate"] > 0).all()
        for row in found.to_dict("records"):
            pair = {row["left"], row["right"]}
            of_pairs = analysis.pairs.table[analysis.pairs.table[["left", "right"]].apply(set, axis=1) == pair].iloc[0]
            assert row["p_value"] == of_pairs["p_value"]
            assert sorted(abs(row[end]) for end in ("ci_low", "ci_high")) == sorted(
                abs(of_pairs[end]) for end in ("ci_low", "ci_high")
            )
            assert row["ci_low"] < row["estimate"] < row["ci_high"]


def test_tables_hold_the_decisions_and_say_what_made_them(three: Analysis, pieces: dict[str, str]) -> None:
    ranking = paper.ranking_table(three, paper.differences_to_best(three))
    assert ranking.frame["ranks"].tolist() == ["1", "2", "3"]
    assert ranking.frame["mean"].tolist() == three.to_frame()["emmean"].tolist()
    assert ranking.frame["p"].isna().tolist() == [True, False, False]
    for name in ("ranking.tex", "pairs.tex"):
        assert f"\\label{{tab:{name.removesuffix('.tex')}}}" in pieces[name]
        assert tex_text(intervals_text(three.pairs)) in pieces[name]
        assert "moderated standard errors" in pieces[name]
    low, high = (f"{value:.2f}".replace("-", "$-$") for value in three.pairs.table.loc[0, ["ci_low", "ci_high"]])
    assert f"{low}~to~{high}" in pieces["pairs.tex"]


def test_a_pair_without_a_test_gets_no_number(table: Make, as_runs: Make) -> None:
    frame = table()
    late = frame["task"].isin([f"task{i}" for i in range(4, 8)])
    analysis = analyze(as_runs(frame[~((frame["tool"] == "B") & late) & ~((frame["tool"] == "C") & ~late)]))
    pairs = paper.pairs_table(analysis)
    row = pairs.frame.set_index(["first", "second"]).loc[("B", "C")]
    assert (np.isnan(row["difference"]), row["95 % CI"], np.isnan(row["p"])) == (True, "–", True)
    assert "A dash: the pair has no test, and nothing is claimed about it." in pairs.notes[0]


def test_a_column_of_algorithms_may_be_called_as_a_number_is(table: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(table().rename(columns={"tool": "mean"}), algorithm="mean"))
    frame = paper.ranking_table(analysis, paper.differences_to_best(analysis)).frame
    assert frame.columns.tolist() == ["algorithm", "mean", "difference", "95 % CI", "p", "ranks"]
    assert frame["algorithm"].tolist() == ["A", "B", "C"]


def test_of_many_algorithms_the_best_are_shown_and_the_rest_is_counted(many: Analysis) -> None:
    pairs = paper.pairs_table(many)
    assert len(pairs.frame) == 45
    assert {*pairs.frame["first"], *pairs.frame["second"]} == set(many.decisions.levels[:10])
    assert pairs.notes[-1] == "The 10 best of 20 algorithms are shown; adjustments are for all pairs."
    assert len(paper.ranking_table(many, paper.differences_to_best(many)).frame) == 20


@pytest.mark.parametrize(("characters", "shown"), [(10, 10), (40, 7), (400, 2)])
def test_pairs_of_long_names_are_those_that_a_page_holds(characters: int, shown: int) -> None:
    assert len(paper._best_on_a_page(("x" * characters,) * 20)) == shown


@pytest.mark.usefixtures("undrawn")
def test_the_results_are_the_answer_and_reservations_stand_apart(
    three: Analysis, pieces: dict[str, str], table: Make, as_runs: Make
) -> None:
    told = " ".join(map(plain, answer(three)))
    assert pieces["sentence.txt"] == f"{told}\n"
    source = " ".join(pieces["sentence.tex"].split())
    assert source.replace(r"\,\%", " %").replace("~", " ").replace("$", "") == told
    few = analyze(as_runs(table(benchmarks=("x", "y", "z"), seeds=2)))
    text = paper.paper_files(few, lambda _: None)["sentence.txt"].decode()
    results, _, rest = text.partition("\n\nBefore you use it:\n- ")
    assert [*results.split(), *rest.replace("\n- ", " ").split()] == [
        word
        for sentence in (*map(plain, answer(few)), *few.sentences()[len(answer(few)) :])
        for word in sentence.split()
    ]


def test_means_over_unlike_things_are_not_published(table: Make, as_runs: Make, tmp_path: Path) -> None:
    frame = table().assign(epoch=lambda one: np.where(one["tool"] == "A", 1, 9) + one["seed"])
    analysis = analyze(as_runs(frame, budget="epoch", seed=None), formula="loss ~ tool + (1 | task)")
    assert analysis.incomparable
    with pytest.raises(
        DesignError, match="There is nothing to publish yet: the means cannot be compared as they stand"
    ):
        analysis.save_paper(tmp_path / "paper")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------- sources


@pytest.mark.level(2)
def test_every_citation_has_its_entry_and_every_work_is_cited_somewhere(three: Analysis) -> None:
    fits = [
        analyze(three.runs, adjust=adjust, vcov=vcov, ddf=ddf)
        for adjust, vcov, ddf in (
            ("stepdown", "moderated", "satterthwaite"),
            ("tukey", "model", "kenward-roger"),
            ("holm", "moderated", "kenward-roger"),
            ("shaffer", "model", "satterthwaite"),
            ("fdr", "model", "residual"),
        )
    ]
    fits.append(analyze(three.runs, population="run"))
    n = len(three.runs.levels("task"))
    fits.append(analyze(three.runs, looks=[n, n + 4]))
    everywhere = set()
    for analysis in fits:
        text = methods_paragraph(analysis)
        keys = set(re.findall(r"~\\cite\{(\w+)\}", paper._source(text)))
        assert keys == set(cited_in(text))
        assert set(re.findall(r"@\w+\{(\w+),", bibtex(cited_in(text)))) == keys
        assert "(~" not in paper._source(text)  # a citation brings its brackets
        everywhere |= keys
    assert everywhere == set(SOURCES)


def test_entries_are_complete_ascii_and_have_a_doi_where_there_is_one() -> None:
    assert bibtex(SOURCES).isascii()
    for key, source in SOURCES.items():
        needed = {
            "author",
            "title",
            "year",
            *(("publisher",) if "publisher" in source else ("journal", "volume", "number", "pages")),
        }
        assert needed <= set(source) <= needed | {"doi"}
        assert key == source["author"].split(",")[0].lower() + source["year"]
        assert re.fullmatch(r"10\.\d{4,}/\S+", source.get("doi", "10.1000/none"))
    assert [key for key, source in SOURCES.items() if "doi" not in source] == ["holm1979"]


# --------------------------------------------------------------------------------------------------------- files


def test_the_same_analysis_gives_the_same_bytes_and_their_sums(three: Analysis, tmp_path: Path) -> None:
    steps: list[str] = []
    paths = three.save_paper(tmp_path / "one", progress=steps.append)
    assert steps == ["drawing the figures", "writing the paper"]
    assert [path.name for path in paths] == [*PAPER_FILES, "files.sha256"]
    again = three.save_paper(str(tmp_path / "two"))
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    sums = dict(reversed(line.split("  ")) for line in paths[-1].read_text().splitlines())
    assert sums == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths[:-1]}
    for name in ("figure.pdf", "differences.pdf"):
        content = (tmp_path / "one" / name).read_bytes()
        assert content.startswith(b"%PDF")
        assert not re.search(rb"CreationDate|/Creator|/Producer|/Type3", content)


@pytest.mark.usefixtures("undrawn")
def test_what_others_wrote_or_changed_is_replaced_only_if_asked(three: Analysis, tmp_path: Path) -> None:
    three.save_paper(tmp_path)
    three.save_paper(tmp_path)  # its own files are renewed
    edited = tmp_path / "sentence.tex"
    edited.write_text("We prefer this.", encoding="utf-8")
    message = (
        f"folder must be a folder without files of others: sentence.tex of {str(tmp_path)!r} was not written here, or "
        "changed since. Choose another folder, or replace them with overwrite=True."
    )
    with pytest.raises(ArgumentError) as error:
        three.save_paper(tmp_path)
    assert str(error.value) == message
    assert edited.read_text(encoding="utf-8") == "We prefer this."
    three.save_paper(tmp_path, overwrite=True)
    assert edited.read_text(encoding="utf-8").startswith("A is the best")
    (tmp_path / "files.sha256").unlink()
    with pytest.raises(ArgumentError, match=r"figure\.pdf, differences\.pdf, ranking\.tex, .* were not written here"):
        three.save_paper(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "files.sha256").write_text("0  my.iso\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"others: files\.sha256 of"):
        three.save_paper(tmp_path / "mine")


@pytest.mark.usefixtures("undrawn")
def test_a_failure_leaves_what_was_there(three: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three.save_paper(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    written: list[str] = []

    def full(name: str, _: int) -> None:
        written.append(name)
        if len(written) == 5:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("lmemtest.report.files.os.chmod", full)
    with pytest.raises(OSError, match="No space left on device; nothing was written"):
        replace(three, call="another call").save_paper(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("folder", [None, 3, b"paper", "no/such/paper", __file__])
def test_folders_that_cannot_be_written_are_refused_in_words(three: Analysis, folder: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^(folder must be|path must be)"):
        three.save_paper(folder)
    with pytest.raises(ArgumentError, match="overwrite must be True or False"):
        three.save_paper("paper", overwrite="yes")  # type: ignore[arg-type]


@pytest.mark.usefixtures("undrawn")
def test_names_are_text_in_every_piece(hostile: Analysis) -> None:
    files = paper.paper_files(hostile, lambda _: None)
    for name, content in files.items():
        if not name.endswith((".tex", ".bib")):
            continue
        text = content.decode("ascii")
        inputs = set(re.findall(r"\\input\{(\w+)\}", text))
        assert inputs <= {"methods", "sentence", "ranking", "pairs"}
        assert text.count("\\begin{table}") == text.count("\\end{table}")
        bare = re.sub(r"\\[{}]", "", text)
        assert bare.count("{") == bare.count("}"), name
    assert "U+1F680" in files["ranking.tex"].decode()


# ------------------------------------------------------------------------------------------------------- pdfLaTeX

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None or shutil.which("bibtex") is None, reason="pdflatex and bibtex are not installed"
)
MINIMAL = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx}
\begin{document}
%s
\end{document}
"""


def compiled(folder: Path, name: str, *, bibliography: bool = False) -> str:
    """The log of a document that compiles, and what bibtex says."""
    steps = [["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name]] * 2
    steps[1:1] = [["bibtex", name], steps[0]] if bibliography else []
    said = ""
    for command in steps:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=120)
        said += done.stdout.decode(errors="replace") if command[0] == "bibtex" else ""
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    return (folder / f"{name}.log").read_text(errors="replace") + said


def clean(log: str) -> None:
    assert not re.search(r"undefined|multiply defined|Missing character|Warning--", log), log[-2000:]


@needs_latex
@pytest.mark.level(2)
@pytest.mark.parametrize("name", ["three", "hostile", "many"])
def test_article_and_supplement_compile(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    request.getfixturevalue(name).save_paper(tmp_path)
    clean(compiled(tmp_path, "article", bibliography=True))
    log = compiled(tmp_path, "supplement")
    clean(log)
    assert int(re.search(r"Output written on supplement\.pdf \((\d+) page", log)[1]) <= 2  # type: ignore[index]
    assert r"Overfull \hbox" not in log


@needs_latex
@pytest.mark.level(2)
def test_each_piece_compiles_in_an_article_of_its_own(hostile: Analysis, tmp_path: Path) -> None:
    hostile.save_paper(tmp_path)
    for piece in ("ranking", "pairs", "sentence", "methods"):
        (tmp_path / f"with-{piece}.tex").write_text(MINIMAL % rf"\input{{{piece}}}", encoding="utf-8")
        compiled(tmp_path, f"with-{piece}")
    for piece in ("figure", "differences"):
        (tmp_path / f"with-{piece}.tex").write_text(MINIMAL % rf"\includegraphics{{{piece}}}", encoding="utf-8")
        assert "Overfull" not in compiled(tmp_path, f"with-{piece}")


@needs_latex
@pytest.mark.level(2)
def test_a_report_compiles_with_its_figures(hostile: Analysis, tmp_path: Path) -> None:
    hostile.save(tmp_path / "report.tex")
    log = compiled(tmp_path, "report")
    clean(log)
    assert log.count("<./report_files/") >= 4
    assert r"Overfull \hbox" not in log


@needs_latex
@pytest.mark.level(2)
def test_every_character_compiles_in_text_captions_and_long_tables(tmp_path: Path) -> None:
    signs = [" ".join(map(chr, range(block, block + 32))) for block in (*range(32, 0x600, 32), 0x1E00, 0x1EA0, 0x2000)]
    signs += [" ".join(map(chr, range(block, block + 32))) for block in (0x2070, 0x2200, 0x2260, 0x1F600)]
    title, frame = signs[5], pd.DataFrame({"signs": signs, "x": 1.5})
    tables = [ResultTable(title, frame).to_latex(), ResultTable(title, frame, (title,)).to_latex(pages=True)]
    body = "\n\n".join([*map(tex_text, signs), *tables])
    source = (MINIMAL % body).replace("graphicx", "longtable")
    (tmp_path / "signs.tex").write_text(source, encoding="ascii")
    clean(compiled(tmp_path, "signs"))


@pytest.mark.level(2)
def test_another_process_writes_the_same_bytes(hostile: Analysis, tmp_path: Path) -> None:
    import pickle

    (tmp_path / "analysis.pickle").write_bytes(pickle.dumps(hostile))
    code = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb')).save_paper(sys.argv[2])"
    for place in ("one", "two"):
        command = [sys.executable, "-c", code, str(tmp_path / "analysis.pickle"), str(tmp_path / place)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": str(len(place) * ord(place[0]))})
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / place).iterdir()} for place in ("one", "two"))
    assert one == two
