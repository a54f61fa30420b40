"""Ratings of models from votes on pairs of their answers, with errors that allow for voters and prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit

from lmemtest.bench.ranking.bradley_terry import ELO
from lmemtest.bench.ranking.leaderboard import CENTRE
from lmemtest.bench.votes.ballots import read_votes
from lmemtest.bench.votes.davidson import cluster_covariance, confounded, effective_clusters, fit_votes
from lmemtest.core.caller import setting
from lmemtest.core.hints import guided
from lmemtest.core.options import ADJUSTMENT_NAMES, REPORT_ADJUSTMENTS
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_flag, check_fraction, check_names
from lmemtest.core.words import counted, format_number, joined, p_text, percent, plural
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.distributions.student import t_quantile, two_sided_p
from lmemtest.lmm.engine.functions import Functions, OfFunctions
from lmemtest.lmm.means.estimates import Estimates

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Mask
    from lmemtest.lmm.means.decisions import Decisions

TIES, PLACE = "ties", "first place"
_NOTHING = 1e-6  # rating points: a standard error of rounding


@guided
@one_blas_thread()
def rate_votes(
    table: Any,
    *,
    model_a: str | None = None,
    model_b: str | None = None,
    winner: str | None = None,
    voter: str | None = None,
    prompt: str | None = None,
    outcomes: Mapping[Any, str] | None = None,
    position: bool = True,
    style: Sequence[str] = (),
    adjust: str = "holm",
    alpha: float = 0.05,
) -> Answer:
    """Rate models by votes on pairs of their answers, for voters and prompts like these.

    Parameters
    ----------
    table : dataframe or mapping
        One row per vote.
    model_a, model_b : str, optional
        Columns of the model shown first and of the other one. By default columns of these names, or two columns with
        the same models.
    winner : str, optional
        Column of the outcomes: "model_a", "model_b", "tie", "tie (bothbad)", "a", "b", "left", "right", 1 (the first
        one won), 0, 0.5, the name of one of the two models, or a value that `outcomes` declares.
    voter, prompt : str, optional
        Columns of who voted and on what. Votes of a voter, or on a prompt, are no independent draws. By default columns
        with usual names (judge, user, question_id, ...), and a note says so.
    outcomes : mapping of value to {"a", "b", "tie"}, optional
        What other values of `winner` mean.
    position : bool
        Whether to allow for an advantage of the model shown first.
    style : sequence of str
        Columns with differences between the two answers, the first less the second, such as of log lengths: ratings are
        then those at equal style. They are divided by their standard deviation; zero stays zero.
    adjust : {"holm", "stepdown", "shaffer", "sidak", "bonferroni", "tukey", "singlestep", "fdr", "none"}
        Adjustment for the number of pairs.
    alpha : float in (0, 1)
        Of decisions; intervals are at 1 - alpha.

    Returns
    -------
    Answer
        ``to_frame()`` has one row per model, the highest rating first: ``model``, ``rating``, ``se``, ``df``,
        ``ci_low``, ``ci_high`` (each interval by itself), ``share``, the share of votes that it is expected to win
        against an average model, ties one half; ``n``, its votes; ``rank_low`` and ``rank_high``, its set of ranks, for
        all models at once; ``letters`` of up to 12 models. ``to_frame("pairs")`` has all pairs, with adjusted p-values.
        ``to_frame("terms")`` has the advantage of the first place and of one standard deviation of each style in rating
        points, and the share of ties between equal models. ``ratings`` (`Estimates`), ``comparisons`` (`Comparisons`),
        ``decisions`` (`Decisions`), ``columns``, ``n_votes``, ``n_clusters``, ``alpha``.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule, or names a column that does not exist.
    DataError
        If an outcome is unknown, values are missing, a model meets itself, or a style is constant.
    DesignError
        If votes do not connect the models, a group of models won or lost every vote against the others, a covariate
        cannot be told apart from the ratings, or there is one voter or one prompt.

    Notes
    -----
    The model of Davidson (1970): odds of a win depend on the difference of two ratings, 400 points being 10 to 1, and
    ties are likeliest between equal models; fitted by maximum likelihood. The mean of all ratings is 1,000. Ratings
    describe the average over voters: where tastes differ they are closer together than those of one voter.

    Errors are sandwich estimates by clusters: voters, prompts, or both (variances by voters and by prompts less that by
    their intersections). With neither, each vote is its own cluster. Degrees of freedom of a comparison are one less
    than the effective number of clusters of the model that has fewer, ``(sum n)^2 / sum n^2`` over its votes n of each
    cluster, so a few heavy voters, or a new model that few have judged, count as the few that they are. With G - 1
    instead, 16 to 27 % of simulated tables with such voters had a false difference; so 1 to 4 % have (page Validation).

    References
    ----------
    Bradley & Terry (1952), doi:10.1093/biomet/39.3-4.324; Davidson (1970), doi:10.1080/01621459.1970.10481082; Cameron,
    Gelbach & Miller (2011), doi:10.1198/jbes.2010.07136; Chiang et al. (2024), Chatbot Arena, arXiv:2403.04132

    Examples
    --------
    >>> import lmemtest as lt
    >>> wins = {("A", "B"): 30, ("B", "A"): 15, ("A", "C"): 28, ("C", "A"): 12, ("B", "C"): 20, ("C", "B"): 18}
    >>> rows = [pair for pair, n in wins.items() for _ in range(n)]
    >>> votes = {"model_a": [a for a, _ in rows], "model_b": [b for _, b in rows], "winner": ["model_a"] * len(rows)}
    >>> found = lt.rate_votes(votes, position=False)
    >>> found.to_frame()[["model", "rating", "rank_low", "rank_high", "letters"]].round(1)
      model  rating  rank_low  rank_high letters
    0     A  1089.0         1          1       a
    1     B   966.0         2          3       b
    2     C   944.9         2          3       b
    """
    position, alpha = check_flag(position, "position"), check_fraction(alpha, "alpha")
    check_choice(adjust, "adjust", REPORT_ADJUSTMENTS)
    if outcomes is not None and not isinstance(outcomes, Mapping):
        raise ArgumentError(f"outcomes must map values to 'a', 'b' or 'tie', got {outcomes!r:.60}.")
    roles = {"model_a": model_a, "model_b": model_b, "winner": winner, "voter": voter, "prompt": prompt}
    columns, names, votes = read_votes(table, roles, outcomes or {}, style)
    a, b, outcome = (votes[role] for role in ("model_a", "model_b", "winner"))
    k, n = len(names), len(outcome)
    covariates = [PLACE] * position + list(check_names(style, "style"))
    # votes that are alike are one row with their number as its weight
    key = np.arange(n) if len(covariates) > position else (a * k + b) * 3 + outcome.astype(np.intp)
    _, first, of_row, weight = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    signs = sp.csr_array((np.tile([1.0, -1.0], n), np.column_stack([a, b]).ravel(), 2 * np.arange(n + 1)), shape=(n, k))
    X = sp.hstack([signs, np.column_stack([np.ones((n, int(position))), votes["style"]])], format="csr")
    confused = [covariates[i] for i in confounded(X[first], weight.astype(float), k)]
    if confused:
        away = f": {setting('position', False)}" if PLACE in confused else ""
        raise DesignError(
            f"These votes do not tell the effect of {joined(confused)} apart from the ratings and other effects. "
            f"Leave it out{away}."
        )
    estimate, inverse, residual = fit_votes(X[first], outcome[first], weight.astype(float), k)
    kinds: list[str] = [role for role in ("voter", "prompt") if role in votes]
    clusters = [votes[role] for role in kinds] or [np.arange(n)]
    V = cluster_covariance(X, residual[of_row], inverse, clusters)
    effective = np.min([effective_clusters(X, codes, k) for codes in clusters], axis=0)
    ratings = Estimates.of(
        {"model": names},
        b=CENTRE + ELO * estimate[:k],
        V=ELO**2 * V[:k, :k],
        df=OfFunctions(partial(_fewest, effective[:k] - 1.0)),
        score="rating",
        direction="maximize",
        column="rating",
        variance_function=OfFunctions(partial(_varies, ELO**2 * V[:k, :k])),
        ddf="clusters",
        errors="cluster-robust",
        n_obs=n,
        alpha=alpha,
    )
    comparisons = ratings.pairs(adjust=adjust, alpha=alpha)
    decisions = replace(comparisons.decisions(alpha), statistic="rating")
    terms = _terms(covariates, estimate[k:], V[k:, k:], effective[-1] - 1.0, alpha)
    win, loss = np.exp(estimate[:k] / 2.0), np.exp(-estimate[:k] / 2.0)
    half_tie = np.exp(estimate[-1]) / 2.0 if len(estimate) > X.shape[1] else 0.0
    models = ratings.table().assign(share=(win + half_tie) / (win + loss + 2.0 * half_tie), n=np.abs(signs).sum(axis=0))
    models = models.assign(**decisions.columns(models["model"].tolist()))
    models = models.set_index("model").loc[list(decisions.levels)].reset_index()
    sizes = {role: int(codes.max()) + 1 for role, codes in zip(kinds, clusters, strict=False)}
    by = (
        joined([f"{counted(size, role)} ({columns[role]})" for role, size in sizes.items()])
        if sizes
        else "single votes"
    )
    wider = written(float(np.median(np.sqrt(np.diag(V)[:k] / np.diag(inverse)[:k]))), ".2f")
    pairs, level, won = (
        comparisons.to_frame(),
        percent(1.0 - alpha),
        [percent((outcome == x).mean()) for x in (1, -1, 0)],
    )
    return Answer(
        question="rate_votes",
        title=f"Ratings of {counted(k, 'model')} by {counted(n, 'vote')}",
        tables={"models": models, "pairs": pairs, "terms": terms},
        values={"ratings": ratings, "comparisons": comparisons, "decisions": decisions, "columns": columns,
                "n_votes": n, "n_clusters": sizes, "alpha": alpha},
        facts=(
            "Davidson's model (Bradley-Terry with ties): 1,000 is the mean of all, and 400 points are odds of 10 to 1.",
            f"Outcomes in {columns['winner']}: the first one ({columns['model_a']}) won {won[0]}, the second one "
            f"({columns['model_b']}) {won[1]}, ties {won[2]}.",
            f"Cluster-robust standard errors by {by}, at the median {wider} times those of independent votes; degrees "
            "of freedom: one less than the effective number of clusters behind a model.",
            f"{level} intervals, pointwise; ranks by all pairs with {ADJUSTMENT_NAMES[adjust]} adjustment.",
        ),
        findings=_findings(models, decisions, pairs, terms, level, alpha),
        notes=_notes(roles, columns, sizes, models),
        printed=models.drop(columns="df"),
        formats={**dict.fromkeys(["rating", "ci_low", "ci_high"], ".0f"), "se": ".1f", "share": ".2f"},
        figure="votes_plot",
    )  # fmt: skip


def _fewest(df: Array, functions: Functions) -> Array:
    """Degrees of freedom of functions of ratings: those of the model that has fewest."""
    return np.asarray(np.where(functions.values != 0.0, df[functions.columns], np.inf).min(axis=0))


def _varies(V: Array, functions: Functions) -> Mask:
    """Whether clusters show any variance of functions of ratings: few that all say the same show none."""
    return np.asarray(functions.quadratic_forms(V[None])[0] > _NOTHING**2)


def _terms(covariates: Sequence[str], estimate: Array, V: Array, df: float, alpha: float) -> pd.DataFrame:
    """What the first place and styles are worth in rating points, and the share of ties between equal models."""
    q, se = len(covariates), np.sqrt(np.diag(V))
    se = np.where(ELO * se > _NOTHING, se, np.nan)
    low, high = (estimate + sign * t_quantile(alpha / 2.0, df) * se for sign in (-1.0, 1.0))
    ends = dict(zip(("estimate", "ci_low", "ci_high"), (estimate, low, high), strict=True))
    table = pd.DataFrame({"term": [*covariates, TIES][: len(se)], "unit": "rating points", "se": ELO * se, "df": df})
    table = table.assign(**{name: ELO * value for name, value in ends.items()}, p_value=two_sided_p(estimate / se, df))
    if len(se) > q:
        share = {name: float(expit(value[q] - np.log(2.0))) for name, value in ends.items()}  # nu / (2 + nu)
        error = share["estimate"] * (1.0 - share["estimate"]) * se[q]
        table.loc[q, list(table)[1:]] = ["share", error, df, *share.values(), np.nan]
    return table[["term", "unit", *ends, "se", "df", "p_value"]]


def _findings(
    models: pd.DataFrame, decisions: Decisions, pairs: pd.DataFrame, terms: pd.DataFrame, level: str, alpha: float
) -> tuple[str, ...]:
    """Who is first, how many pairs differ, and what else moves votes."""
    top, differ = models.iloc[0], int(below(pairs["p_value"], alpha).sum())
    rating, low, high = (written(top[name], ".0f") for name in ("rating", "ci_low", "ci_high"))
    lines = [
        f"{top['model']} has the highest rating, {rating} ({level} CI {low} to {high}): {percent(top['share'])} of "
        "votes against an average model.",
        *decisions.sentences(),
        f"{differ:,} of {counted(len(pairs), 'pair')} differ significantly.",
    ]
    for row in terms.to_dict("records"):
        write = percent if row["term"] == TIES else partial(format_number, digits=3)
        value, low, high = (write(row[name]) for name in ("estimate", "ci_low", "ci_high"))
        if row["term"] == TIES:
            lines.append(f"Equal models tie in {value} of votes ({level} CI {low} to {high}).")
            continue
        what = "Being shown first" if row["term"] == PLACE else f"One standard deviation of {row['term']}"
        verb = "is worth" if below(row["p_value"], alpha) else "makes no significant difference:"
        lines.append(f"{what} {verb} {value} points ({level} CI {low} to {high}, {p_text(row['p_value'])}).")
    return tuple(lines)


def _notes(
    roles: Mapping[str, str | None], columns: Mapping[str, str], sizes: Mapping[str, int], models: pd.DataFrame
) -> tuple[str, ...]:
    """What was guessed, what is taken as independent, and which models have no error."""
    guessed = [setting(role, name) for role, name in columns.items() if roles[role] is None and role != name]
    notes = [f"By names and content of the columns: {', '.join(guessed)}."] if guessed else []
    lacking = [plural(role) for role in ("voter", "prompt") if role not in sizes]
    if lacking:
        notes.append(
            f"No column of {joined(lacking)} is named: votes of one of them are taken as independent, and where it has "
            "several, intervals are too short."
        )
    unknown = models.loc[models["se"].isna(), "model"].tolist()
    if unknown:
        notes.append(
            f"Votes on {joined(unknown)} are all of one voter or prompt, or nearly so, or agree entirely: they say "
            "nothing of others, and there is no test."
        )
    return tuple(notes)
