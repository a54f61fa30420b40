"""Rankings as files, on the command line and as a section of a report: the numbers of one record, escaped."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.core.table import ResultTable
from lmemtest.core.words import rank_span
from lmemtest.report.document import plain
from lmemtest.report.documents import classical_blocks, ranking_document
from lmemtest.report.files import content_of

RNG = np.random.default_rng(3)
WIDE = pd.DataFrame(RNG.normal(size=(9, 3)) + np.arange(3), columns=["<b>_1", "50 % & more", "plain"])
WIDE.index = [f"task {i}" for i in range(9)]


@pytest.fixture(scope="module")
def found():
    return lt.rank(WIDE, "frequentist", test="wilcoxon", direction="maximize")


def test_documents_are_escaped_and_hold_the_paragraph(found):
    tex, html = content_of(found, ".tex"), content_of(found, ".html")
    assert r"$<$b$>$\_1" in tex
    assert r"50 \% \& more" in tex
    assert "<b>_1" not in html.replace("&lt;b&gt;_1", "")
    assert "<svg" in html
    text = content_of(found, ".txt").replace("\n", " ")
    assert "Computed with lmemtest" in text


@pytest.mark.parametrize(("suffix", "begin"), [(".csv", "algorithm,"), (".json", "{"), (".md", "# Ranking of 3")])
def test_the_suffix_decides_what_is_written(found, suffix, begin):
    assert content_of(found, suffix).startswith(begin)


def test_files_are_written_whole(found, tmp_path):
    path = found.save(tmp_path / "ranking.txt")
    assert path.read_text(encoding="utf-8") == content_of(found, ".txt")
    (image,) = found.save(tmp_path / "my ranking.md").with_name("my-ranking_files").iterdir()
    assert f"](<my-ranking_files/{image.name}>)" in (tmp_path / "my ranking.md").read_text(encoding="utf-8")
    with pytest.raises(lt.errors.ArgumentError, match="path must end in one of"):
        found.save(tmp_path / "ranking.pdf")


def test_json_has_all_digits(found):
    content = json.loads(content_of(found, ".json"))
    assert content["pairs"][0]["p_raw"] == found.pairs["p_raw"].iat[0]
    assert content["pairs"][0]["df"] is None


def test_every_method_has_its_own_words():
    several = lt.rank(WIDE, "all", direction="maximize", n_draws=1000)
    page = content_of(several, ".txt").replace("\n", " ")
    for words in ("Tukey's HSD", "Nemenyi's test", "Wilcoxon signed-rank", "Bayesian signed-rank", "mixed model"):
        assert words in page
    assert "nan" not in page.split("References")[0].replace("Rena", "")


def test_the_first_table_of_a_ranking_fits_beside_its_figure_and_its_section_has_all_of_it():
    ranked = lt.rank(WIDE, "frequentist", direction="maximize")
    document = ranking_document(ranked)
    (first,) = (block for block in document.front if isinstance(block, ResultTable))
    assert [*first.frame] == ["algorithm", "rank", "mean", "mean rank", "95 % CI", "groups"]
    row = ranked.to_frame().iloc[0]
    assert first.frame["rank"].iat[0] == rank_span(row["rank_low"], row["rank_high"])
    low, high = map(float, first.frame["95 % CI"].iat[0].split(" to "))
    np.testing.assert_allclose([low, high], [row["ci_low"], row["ci_high"]], atol=1e-3)
    (whole,) = (
        block for block in document.sections[-1].blocks if isinstance(block, ResultTable) and block.title == first.title
    )
    pd.testing.assert_frame_equal(whole.frame, ranked.to_table().frame)


@pytest.mark.level(2)
def test_the_report_has_classical_rankings_beside_the_model():
    runs = lt.datasets.load_hpo_runs().filter(budget=16)
    analysis = lt.analyze(runs)
    blocks = classical_blocks(analysis)
    assert blocks
    said = plain(blocks[0])
    model = {
        frozenset(pair): bool(p < 0.05) for *pair, p in analysis.pairs.table[["left", "right", "p_value"]].to_numpy()
    }
    nemenyi = lt.rank(runs, "frequentist", test="nemenyi").decisions.significant
    wilcoxon = lt.rank(runs, "frequentist", test="wilcoxon").decisions.significant
    tukey = lt.rank(runs, "frequentist", test="tukey").decisions.significant
    agree = sum({m.loc[tuple(pair)] for m in (nemenyi, wilcoxon, tukey)} == {differ} for pair, differ in model.items())
    assert f"agree on {'all' if agree == 15 else f'{agree} of'} 15 pairs" in said
    assert "Does it hold elsewhere?" in analysis.to_text()
