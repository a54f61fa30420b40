"""The base of every result: what a subclass gives, and what it gets."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pandas as pd
import pytest
from refusals import refuses

from lmemtest.core.result import Answer, Result, result
from lmemtest.errors import ArgumentError


@result
class Means(Result):
    """Means, and how often each of them won."""

    parts = {"means": "table", "wins": "wins"}
    formats = {"mean": ".1f"}

    table: pd.DataFrame
    found: tuple[str, ...] = ("HB is better than RS.",)
    notes: tuple[str, ...] = ("Few runs.",)

    @property
    def title(self) -> str:
        return "Means"

    @property
    def facts(self) -> tuple[str, ...]:
        return ("Lower is better.",)

    def sentences(self) -> tuple[str, ...]:
        return self.found

    def wins(self) -> pd.DataFrame:
        return pd.DataFrame({"wins": [3, 1]})


def means(**fields):
    return Means(table=pd.DataFrame({"algorithm": ["HB", "RS"], "mean": [0.25, 10.5]}), **fields)


def test_the_summary_has_the_table_how_it_was_obtained_the_notes_and_the_findings():
    assert means().summary().split("\n") == [
        "Means",
        "algorithm  mean",
        "---------  ----",
        "HB          0.3",
        "RS         10.5",
        "Lower is better.",
        "Few runs.",
        "",
        "HB is better than RS.",
    ]
    assert repr(means()) == means().summary()


def test_the_headline_is_the_first_of_the_sentences_or_the_title():
    assert means().headline() == "HB is better than RS."
    assert means(found=()).headline() == "Means"


def test_many_findings_are_cut_with_their_number():
    assert means(found=("One.",) * 18).summary().endswith("One.\n... and 3 more in sentences().")


def test_findings_are_escaped_in_a_notebook():
    shown = means(found=("<b> is better.",))._repr_html_()
    assert "<li>&lt;b&gt; is better.</li>" in shown
    assert "<caption>Means</caption>" in shown
    assert "<ul>" not in means(found=())._repr_html_()


def test_each_part_is_a_data_frame_and_a_copy():
    found = means()
    assert list(found.to_frame("wins")["wins"]) == [3, 1]
    copy = found.to_frame()
    copy["mean"] = 0.0
    assert list(found.to_frame("means")["mean"]) == [0.25, 10.5]
    refuses(ArgumentError, "part must be 'means' or 'wins', got 'losses'", found.to_frame, "losses")


def test_a_result_is_frozen_and_built_by_keyword():
    with pytest.raises(dataclasses.FrozenInstanceError):
        means().notes = ()
    with pytest.raises(TypeError):
        Means(pd.DataFrame())


def test_the_figure_is_the_one_that_is_named(monkeypatch):
    import lmemtest.plots

    refuses(ArgumentError, "Means has no figure", means().plot)
    monkeypatch.setattr(Means, "figure", "cd_diagram")
    monkeypatch.setattr(lmemtest.plots, "cd_diagram", lambda *a, **k: (a, k), raising=False)
    found = means()
    assert found.plot(alpha=0.1) == ((found,), {"ax": None, "alpha": 0.1})


def wins() -> Answer:
    return Answer(
        question="wins",
        title="Wins",
        tables={"wins": pd.DataFrame({"algorithm": ["HB", "RS"], "n": [3, 1]}), "ties": pd.DataFrame({"n": [0]})},
        values={"n_benchmarks": 4},
        facts=("Of 4 benchmarks.",),
        findings=("HB wins on 3 of 4 benchmarks.",),
        printed=pd.DataFrame({"algorithm": ["HB"], "n": [3]}),
    )


def test_an_answer_has_its_tables_and_values_as_attributes_and_prints_as_every_result():
    answer = wins()
    assert (answer.n_benchmarks, len(answer.wins), len(answer.to_frame("ties"))) == (4, 2, 1)
    assert (
        answer.summary() == "Wins\nalgorithm  n\n---------  -\nHB         3\nOf 4 benchmarks.\n\n" + answer.findings[0]
    )
    assert set(answer.contents()) == {"sentences", "wins", "ties"}
    assert {"n_benchmarks", "wins", "to_csv"} <= set(dir(answer))
    with pytest.raises(AttributeError, match=r"^wins has no 'n_benchmark'\. Did you mean 'n_benchmarks'\?"):
        answer.n_benchmark  # noqa: B018


def test_an_answer_is_frozen_and_travels():
    with pytest.raises(dataclasses.FrozenInstanceError):
        wins().title = "Losses"
    assert pickle.loads(pickle.dumps(wins())).n_benchmarks == copy.deepcopy(wins()).n_benchmarks == 4


def test_an_answer_without_a_figure_names_the_question():
    refuses(ArgumentError, r"^wins has no figure", wins().plot)
