"""Ratings by votes against R, closed forms and what must not change them, and what is refused by its words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from figures import beside, words_below
from numpy.testing import assert_allclose
from references import values
from refusals import refuses

import lmemtest as lt
from lmemtest.bench.ranking.bradley_terry import ELO
from lmemtest.errors import ArgumentError, DataError, DesignError, EstimationError, LmemtestError, UnknownColumnError


def simulated() -> pd.DataFrame:
    """The votes of the reference; the models are called m1 to m4."""
    table = pd.DataFrame({name: np.array(text.split(), dtype=float) for name, text in values("votes")["votes"].items()})
    names = {role: "m" + table[role].astype(int).astype(str) for role in ("a", "b")}
    return table.assign(model_a=names["a"], model_b=names["b"]).drop(columns=["a", "b"])


def of_pairs(counts: dict[tuple[str, str], tuple[int, int, int]]) -> pd.DataFrame:
    """Votes from the numbers of wins, losses and ties of the first of two."""
    rows = [(a, b, side) for (a, b), n in counts.items() for side, m in zip("abt", n, strict=True) for _ in range(m)]
    table = pd.DataFrame(rows, columns=["model_a", "model_b", "winner"])
    return table.assign(winner=table["winner"].replace("t", "tie"))


def rated(table: pd.DataFrame, **options: Any) -> pd.DataFrame:
    return lt.rate_votes(table, **options).to_frame().set_index("model").sort_index().drop(columns="letters")


# ------------------------------------------------------------------------------------------------------------- numbers


def test_citations_of_journals_have_the_abilities_of_bradleyterry2() -> None:
    want = values("votes")["citations"]
    pairs = zip(want["first"], want["second"], strict=True)
    counts = {pair: (won, lost, 0) for pair, won, lost in zip(pairs, want["wins"], want["losses"], strict=True)}
    ratings = lt.rate_votes(of_pairs(counts), position=False).ratings
    abilities = dict(zip(ratings.labels(), ratings.estimate / ELO, strict=True))
    assert_allclose([abilities[n] - abilities["Biometrika"] for n in want["names"]], want["theta"], rtol=1e-9)
    assert_allclose(want["theta"], [-2.94907, -0.47957, 0.26895], atol=5e-6)  # as printed by Turner & Firth (2012)


@pytest.mark.parametrize("clusters", [("voter",), ("prompt",), ("voter", "prompt")])
def test_without_ties_it_is_the_logistic_regression_with_the_sandwich_of_its_clusters(clusters):
    want = values("votes")["logit"]
    table = simulated()
    options = dict.fromkeys(("voter", "prompt")) | {name: name for name in clusters}
    hidden = table.drop(columns=[name for name in ("voter", "prompt") if name not in clusters])
    found = lt.rate_votes(hidden, winner="won", style="length", **options)
    contrasts = np.eye(4)[:3] - np.eye(4)[3]
    assert_allclose(contrasts @ found.ratings.b / ELO, want["coefficients"][1:4], rtol=1e-8)
    V = np.array(want["both" if len(clusters) == 2 else clusters[0]])
    assert_allclose(contrasts @ found.ratings.V @ contrasts.T / ELO**2, V[1:4, 1:4], rtol=1e-7)
    sd = table["length"].std(ddof=0)
    first, length = found.terms["estimate"] / ELO
    assert_allclose([first, length], [want["coefficients"][0], want["coefficients"][4] * sd], rtol=1e-8)
    assert_allclose(found.terms["se"] / ELO, np.sqrt(np.diag(V))[[0, 4]] * [1.0, sd], rtol=1e-7)


def test_ties_and_the_first_place_are_those_of_the_log_linear_model() -> None:
    want = values("votes")["davidson"]
    table = simulated().drop(columns=["won", "voter", "prompt"]).replace({"y": {1.0: "a", -1.0: "b", 0.0: "tie"}})
    found = lt.rate_votes(table, winner="y")
    contrasts = np.eye(4)[:3] - np.eye(4)[3]
    assert_allclose(contrasts @ found.ratings.b / ELO, want["coefficients"][:3], rtol=1e-7)
    first, ties = found.terms["estimate"]
    nu = np.exp(want["coefficients"][4])
    assert_allclose([first / ELO, ties], [want["coefficients"][3], nu / (2.0 + nu)], rtol=1e-7)


def test_ties_with_a_style_and_their_sandwich_are_those_of_the_conditional_logit() -> None:
    """Of R's survival, whose sandwich has no factor: that is G / (G - 1) (n - 1) / (n - p), p = 6, of 15 voters."""
    want, table = values("votes")["choice"], simulated().drop(columns=["won", "prompt"])
    sd = table["length"].std(ddof=0)
    found = lt.rate_votes(table.replace({"y": {1.0: "a", -1.0: "b", 0.0: "tie"}}), winner="y", style="length")
    contrasts, factor = np.eye(4)[:3] - np.eye(4)[3], 15 / 14 * 399 / 394
    assert_allclose(contrasts @ found.ratings.b / ELO, want["coefficients"][:3], rtol=1e-7)
    V = factor * np.array(want["voter"])
    assert_allclose(contrasts @ found.ratings.V @ contrasts.T / ELO**2, V[:3, :3], rtol=1e-6)
    first, style, ties = found.terms["estimate"]
    nu = np.exp(want["coefficients"][5])
    assert_allclose([first / ELO, style / sd / ELO, ties], [*want["coefficients"][3:5], nu / (2 + nu)], rtol=1e-7)
    scales = [ELO, ELO * sd, ties * (1.0 - ties)]
    assert_allclose(found.terms["se"] / scales, np.sqrt(np.diag(V)[3:]), rtol=1e-6)


@pytest.mark.parametrize(("case", "options"), [("plain", {"position": False}), ("styled", {"style": "length"})])
def test_without_ties_ratings_and_errors_are_those_of_arena_rank(case: str, options: dict[str, Any]) -> None:
    """Its sandwich has no factor, and 1e-5 of a vote on the diagonal of its Hessian, which is 1e-4 of an error here."""
    want = values("arena_rank_votes")[case]
    found = lt.rate_votes(simulated()[["model_a", "model_b", "length", "won"]], winner="won", **options)
    models = found.to_frame().set_index("model").sort_index()
    assert_allclose(models["rating"], want["rating"], rtol=1e-10)
    assert_allclose(found.terms["estimate"], ELO * np.array(want["covariates"]), rtol=1e-9)
    factor = np.sqrt(400 / (400 - 3 - len(want["covariates"])))
    assert_allclose(models["se"], factor * np.array(want["se"]), rtol=2e-4)


@pytest.mark.parametrize(("case", "options"), [("ties", {"position": False}), ("ties_styled", {"style": "length"})])
def test_ties_as_half_a_win_shrink_ratings_by_the_share_of_ties_and_errors_as_much(case, options):
    """arena-rank's: near equal models half a tie moves a logit by 1 - s of Davidson's, s the share of ties."""
    want = values("arena_rank_votes")[case]
    table = simulated()[["model_a", "model_b", "length", "y"]].replace({"y": {1.0: "a", -1.0: "b", 0.0: "tie"}})
    found = lt.rate_votes(table, winner="y", **options)
    models, shrunk = found.to_frame().set_index("model").sort_index(), 1.0 - found.terms["estimate"].iloc[-1]
    assert_allclose(shrunk * (models["rating"] - 1000.0), np.array(want["rating"]) - 1000.0, rtol=0.02)
    assert_allclose(
        (models["rating"] - 1000.0) / models["se"], (np.array(want["rating"]) - 1000.0) / want["se"], rtol=0.03
    )


def test_two_models_have_the_closed_form() -> None:
    found = lt.rate_votes(of_pairs({("A", "B"): (30, 12, 18)}), position=False)
    table = found.to_frame()
    assert_allclose(table["rating"], 1000.0 + np.array([0.5, -0.5]) * ELO * np.log(30 / 12), rtol=1e-12)
    nu = 18 / np.sqrt(30 * 12)  # pi_a : pi_b : nu sqrt(pi_a pi_b) = 30 : 12 : 18
    assert_allclose(found.terms["estimate"][0], nu / (2.0 + nu), rtol=1e-10)
    # votes are multinomial, so the variance of the log odds is 1 / 30 + 1 / 12
    assert_allclose(found.pairs["se"][0], ELO * np.sqrt((1 / 30 + 1 / 12) * 60 / 58), rtol=1e-9)
    half = np.log(30 / 12) / 4.0
    share = (np.exp(half) + nu / 2) / (np.exp(half) + np.exp(-half) + nu)
    assert_allclose(table["share"], [share, 1 - share], rtol=1e-10)


def test_degrees_of_freedom_are_those_of_the_model_with_fewer_effective_clusters() -> None:
    table = simulated().rename(columns={"won": "winner"})
    found = lt.rate_votes(table, voter="voter", winner="winner")
    n = {m: table[(table[["model_a", "model_b"]] == m).any(axis=1)][["prompt", "voter"]] for m in rated(table).index}
    effective = {m: min(len(v) ** 2 / (v[c].value_counts() ** 2).sum() for c in v) for m, v in n.items()}
    assert_allclose(found.to_frame().set_index("model")["df"].sort_index(), [e - 1 for e in effective.values()])
    want = [min(effective[a], effective[b]) - 1 for a, b in zip(found.pairs["left"], found.pairs["right"], strict=True)]
    assert_allclose(found.pairs["df"], want)


def test_order_of_rows_side_of_a_model_and_words_of_outcomes_do_not_matter() -> None:
    table = simulated().rename(columns={"y": "winner"}).drop(columns="won")
    table["winner"] = table["winner"].map({1.0: "model_a", -1.0: "model_b", 0.0: "tie (bothbad)"})
    want = rated(table, style="length")
    shuffled = table.sample(frac=1.0, random_state=1)
    sides = table["winner"].map({"model_a": "right", "model_b": "left"}).fillna("tie")
    turned = table.assign(model_a=table["model_b"], model_b=table["model_a"], length=-table["length"], winner=sides)
    names = table.assign(winner=np.where(table["winner"] == "model_a", table["model_a"],
                         np.where(table["winner"] == "model_b", table["model_b"], "draw")))  # fmt: skip
    numbers = table.assign(winner=table["winner"].map({"model_a": 1, "model_b": 0, "tie (bothbad)": 0.5}))
    declared = table.assign(winner=table["winner"].map({"model_a": 1, "model_b": 2, "tie (bothbad)": 0}))
    assert_allclose(rated(shuffled, style="length"), want, rtol=1e-8)
    assert_allclose(rated(turned, style="length"), want, rtol=1e-8)
    for other in (names, numbers):
        assert_allclose(rated(other, style="length"), want, rtol=1e-10)
    assert_allclose(rated(declared, style="length", outcomes={1: "a", 2: "b", 0: "tie"}), want, rtol=1e-10)


def test_each_vote_twice_in_its_cluster_changes_no_rating_and_no_interval_but_for_the_factor() -> None:
    table = simulated().rename(columns={"won": "winner"})[["model_a", "model_b", "winner", "voter"]]
    once, twice = rated(table), rated(pd.concat([table, table]))
    n, p = len(table), 5
    assert_allclose(twice["rating"], once["rating"], rtol=1e-9)
    factors = [(m - 1) / (m - p + 1) for m in (n, 2 * n)]
    assert_allclose(twice["se"] ** 2 / factors[1], once["se"] ** 2 / factors[0], rtol=1e-8)
    assert_allclose(twice["df"], once["df"], rtol=1e-12)


def test_a_model_that_one_voter_has_judged_has_no_rating_and_no_test() -> None:
    table = simulated().rename(columns={"won": "winner"}).drop(columns=["prompt", "y", "length"])
    rare = pd.DataFrame(
        {"model_a": ["new"] * 6, "model_b": ["m1", "m2"] * 3, "winner": [1, 0, 1, 0, 1, 1], "voter": 3.0}
    )
    found = lt.rate_votes(pd.concat([table, rare]))
    assert np.isnan(found.to_frame().set_index("model").loc["new", ["rating", "se"]].astype(float)).all()
    assert found.decisions.undecided["new"].sum() == 4
    assert any(note.startswith("Votes on new are all of one voter") for note in found.notes)


# ------------------------------------------------------------------------------------------------------ words, refusals


def test_columns_are_found_and_named_and_independence_is_told() -> None:
    table = simulated().rename(columns={"model_a": "llm_1", "model_b": "llm_2", "won": "vote", "voter": "judge"})
    found = lt.rate_votes(table.drop(columns=["y", "prompt"]))
    assert found.columns == {"model_a": "llm_1", "model_b": "llm_2", "winner": "vote", "voter": "judge"}
    assert found.notes[0].endswith("model_a='llm_1', model_b='llm_2', winner='vote', voter='judge'.")
    assert found.notes[1].startswith("No column of prompts is named")
    assert found.sentences()[1] == found.decisions.sentences()[0]
    assert found.n_clusters == {"voter": 15}


def by_style(table: pd.DataFrame) -> pd.DataFrame:
    """Votes with a style that decides them."""
    return table.assign(s=table["winner"].map({"a": 1.0, "tie": 0.0, "b": -1.0}))


@pytest.mark.parametrize("table", [of_pairs({("A", "B"): (9, 5, 3), ("B", "C"): (7, 6, 1), ("C", "A"): (4, 7, 2)})])
@pytest.mark.parametrize(
    ("change", "options", "error", "words"),
    [
        (lambda t: t.assign(winner="same"), {}, DataError, r"'winner' has 'same' at row 0.*outcomes=\{'same': 'tie'\}"),
        (lambda t: t.assign(winner="D"), {}, DataError, "neither one of the two models of its row"),
        (lambda t: t.replace({"model_b": {"B": "A"}}), {}, DataError, r"17 votes of a model against itself"),
        (lambda t: t.replace({"winner": {"tie": None}}), {}, DataError, "has 6 missing values, the first at row 14"),
        (lambda t: t.iloc[:0], {}, DataError, "The table has no votes"),
        (lambda t: t.assign(winner="tie"), {}, DesignError, "All votes are ties"),
        (lambda t: t.iloc[:17], {}, DesignError, r"of first place apart.*position=False"),
        (lambda t: t.assign(u=1), {"voter": "u", "position": False}, DesignError, "'u', which has one value"),
        (lambda t: t.assign(s=2.0), {"style": "s"}, DataError, "'s', which is 2 in every vote"),
        (lambda t: t.assign(s=np.where(np.arange(len(t)) == 3, np.inf, 1.0)), {"style": "s"}, DataError, "1 missing"),
        (lambda t: t.assign(s="x"), {"style": "s"}, DataError, "style"),
        (lambda t: t, {"style": "winner"}, LmemtestError, "winner"),
        (lambda t: t, {"voter": "judge"}, UnknownColumnError, "voter names the column 'judge'"),
        (lambda t: t, {"outcomes": {"z": "a"}}, ArgumentError, "outcomes has 'z', which is not in 'winner'"),
        (lambda t: t, {"outcomes": {"a": "x"}}, ArgumentError, "outcomes must be"),
        (lambda t: t, {"outcomes": "a"}, ArgumentError, "outcomes must map values"),
        (lambda t: t.drop(columns="winner"), {}, ArgumentError, "model_a must be the name of a column"),
        (by_style, {"style": "s"}, EstimationError, "decides votes alone"),
    ],
)  # fmt: skip
def test_what_cannot_be_rated_is_refused(table, change, options, error, words):
    refuses(error, words, lt.rate_votes, change(table), **options)


@pytest.mark.parametrize("verb", ["won", "lost"])
def test_a_model_that_won_or_lost_every_vote_is_named(verb: str) -> None:
    table = of_pairs({("A", "B"): (9, 5, 3), ("B", "A"): (4, 7, 0), ("new", "A"): (6, 0, 0), ("B", "new"): (0, 3, 0)})
    if verb == "lost":
        table["winner"] = table["winner"].replace({"a": "b", "b": "a"})
    refuses(DesignError, rf"^new {verb} every vote against the other models.*isin\(\['new'\]\)", lt.rate_votes, table)
    apart = pd.concat([of_pairs({("A", "B"): (9, 5, 3)}), of_pairs({("C", "D"): (2, 3, 1), ("D", "E"): (2, 3, 1)})])
    refuses(DesignError, r"^A and B are not connected with the other models by votes", lt.rate_votes, apart)


def test_a_model_that_is_called_as_the_other_side_must_be_declared() -> None:
    table = of_pairs({("b", "x"): (9, 5, 0), ("x", "b"): (6, 7, 0)})
    named = table.assign(winner=np.where(table["winner"] == "a", table["model_a"], table["model_b"]))
    refuses(DataError, r"'b' at row 0.*both the name of a model and a word for another outcome", lt.rate_votes, named)


# ---------------------------------------------------------------------------------------------------------- the figure


def test_the_figure_shows_ratings_intervals_and_ranks() -> None:
    found = lt.rate_votes(simulated().rename(columns={"won": "winner"}), style="length")
    ax, table = found.plot(), found.to_frame()
    (dots,) = [line for line in ax.lines if line.get_label() == "_estimates"]
    assert_allclose(dots.get_xdata(), table["rating"])
    assert_allclose(
        [line.get_xdata() for line in ax.lines if line.get_label() == "_interval"], table[["ci_low", "ci_high"]]
    )
    assert beside(ax) == table["letters"].tolist()
    assert "1,000 is the mean of all" in words_below(ax)
    few = lt.plots.votes_plot(found, max_rows=2)
    assert "2 of 4 models" in words_below(few)
