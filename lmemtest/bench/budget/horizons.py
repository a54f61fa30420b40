"""Algorithms compared at several budgets or windows of budgets: which differ where, and whether that changes.

Pairwise tests at several horizons, of the differences and of their changes, and the error over all of them.
Within a family, such as the pairs at a horizon, p-values are adjusted for its pairs. Over families the level is shared
as by Holm (1979): each of H families is tested at alpha / H; one whose pairs are all significant hands its share on, so
that the others are tested at alpha / (H - 1), and so forth. As long as no true null hypothesis is rejected, the m
families that hold one keep their shares, so each is tested at alpha / m at most, and the chance of a false discovery in
any of them is at most alpha, whatever the dependence between families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.budget.curves import ONE_RUN, unknown_runs
from lmemtest.bench.budget.horizon_scores import Place, one_score, places_of, rows_at, run_curves, scores_at
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_METHODS, DDF_NAMES, VCOV
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, tolerance
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, free_name
from lmemtest.core.words import format_number, listed, p_text
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.formula import Term
from lmemtest.lmm.means.emmeans import emmeans

if TYPE_CHECKING:
    from lmemtest.bench.budget.anytime import Anytime
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.model import LmmFit, ModelSpec


WINDOWS = ("averaged", "fixed", "random")
_MOST_EFFECTS = 50  # budgets with an effect each; more would eat the data


@one_blas_thread()
def at(
    curves: Anytime,
    /,
    budgets: Any = None,
    *,
    windows: str = "averaged",
    adjust: str | None = None,
    vcov: str | None = None,
    across: str = "holm",
    alpha: float = 0.05,
    ddf: str = "satterthwaite",
) -> Answer:
    """Compare algorithms at several budgets or windows of budgets, and test what changes between them.

    Parameters
    ----------
    budgets : sequence of number or of two numbers, optional
        Horizons, at most eight: a budget, or a window ``(first, last)``, both included. They are put in the order of
        their ends, a window after the horizons that lie in it. By default up to four budgets spread over the range.
    windows : {"averaged", "fixed", "random"}
        What becomes of the budgets of a window. "averaged": each run counts once, with its mean over them. "fixed" and
        "random" keep the rows, with an effect ``C(budget)`` or ``(1 | budget)`` and the terms that make them one curve.
    adjust : {"stepdown", "singlestep", "tukey", "holm", "sidak", "bonferroni", "none"}, optional
        Adjustment for the pairs of a horizon; by default that of `pairs`, with moderated standard errors where there
        are three benchmarks or more. "tukey" is Tukey's HSD on the model's standard errors.
    across : {"holm", "none"}
        Whether the error is controlled over all horizons together.
    alpha : float in (0, 1)
        Level of all comparisons together, and again of all changes together.
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Degrees of freedom.

    Returns
    -------
    Answer
        - ``table``, a row per horizon and pair: ``horizon``, ``left``, ``right``, ``estimate`` (left - right), ``se``,
          ``df``, ``p_raw`` (of this test alone), ``p_value`` (for all pairs and, unless ``across="none"``, all
          horizons), ``significant`` (missing without a test), ``ci_low``, ``ci_high`` (at the level of the horizon;
          they exclude zero where the pair is significant).
        - ``changes``, a row per pair of algorithms and of horizons, of which none is a part of the other: ``earlier``,
          ``later`` (by their ends), ``left``, ``right``, ``estimate_earlier``, ``estimate_later``, ``change`` (later -
          earlier), the same numbers of its test, and ``pattern``: "reverses" (significant at both in opposite
          directions, and so is the change), "grows", "shrinks" (a significant change of a difference that keeps its
          sign), "changes" (another significant change) or "not shown".
        - ``horizons``, by label ("8", "16-32" for a window), in the order of ``labels``: each an `Answer` with its
          ``place`` (start, end), ``budgets`` (whose scores were used), ``fit`` (the recommended model of the scores
          there), ``pairs`` (adjusted for those of this horizon; ``pairs.estimates`` are the means), ``decisions`` (at
          the level of this horizon, the same as in the table).
        - ``change_formula`` (the model of the change of a run between two horizons, None without), ``budget``,
          ``score``, ``direction``, ``windows``, ``adjust``, ``across``, ``ddf``, ``alpha`` (of all comparisons
          together, and again of all changes together).

    Raises
    ------
    ArgumentError
        If there is no numeric budget, a horizon is malformed, named twice, or has no scores, or an option is unknown.
    DataError
        If there is one budget only, runs have no scores at a horizon, or nothing is repeated.

    Notes
    -----
    The model of a horizon is that of `recommend` for the scores there: benchmarks are the sample. In a window the
    budgets of one run are one curve, and with complete tables its mean says all about the comparison: the t-tests are
    those of the rows with "fixed" and "random", as long as no variance is estimated as zero. Where not all runs have a
    score at a budget, the last one at or before it counts if the runs are best-so-far curves; else it is an error. In a
    window, budgets that not all runs have are left out.

    Over horizons the level is shared as by Holm: each of H horizons is tested at alpha / H, one whose pairs are all
    significant hands its share on. Changes have tests of their own, since "better at 5 and not significantly better at
    15" is no evidence of a change (Gelman & Stern 2006): each run's score at the later horizon minus that at the
    earlier is compared between algorithms by the model recommended for one score per run.

    References
    ----------
    Gelman & Stern (2006), Am. Stat. 60, 328-331, doi:10.1198/000313006X152649; Holm (1979), Scand. J. Stat. 6, 65-70;
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, figure 5.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE"], prior="good")
    >>> found = lt.anytime(runs).at([2, 8, (12, 32)])
    >>> found.labels
    ('2', '8', '12-32')
    >>> print(found.horizons["2"].sentences()[0])
    At 2 HB has the best mean, significantly better than all others.
    >>> found.changes[["earlier", "later", "left", "right", "change", "pattern"]].head(3).round(4)
      earlier later left right  change    pattern
    0       2     8   HB    RS  0.0374  not shown
    1       2     8   HB   TPE  0.0394  not shown
    2       2     8   RS   TPE  0.0019  not shown
    """
    runs, alpha = curves.runs, check_fraction(alpha, "alpha")
    check_choice(windows, "windows", WINDOWS)
    if adjust is not None:
        check_choice(adjust, "adjust", WITHIN)
    if vcov is not None:
        check_choice(vcov, "vcov", VCOV)
    check_choice(across, "across", ACROSS)
    check_choice(ddf, "ddf", DDF_METHODS)
    keys, points, common = run_curves(runs)
    if len(keys) <= runs.study.count(runs.algorithm):
        one = ONE_RUN.format(so="a difference cannot be distinguished from chance")
        raise DataError(unknown_runs() if runs.seed is None else one)
    places, notes = places_of(budgets, runs, points, common)
    scored = [scores_at(place, runs, keys, points, common) for place in places]
    scores = [score for score, *_ in scored]
    models = [_model(place, runs, keys, one, windows) for place, one in zip(places, scored, strict=True)]
    scope = recommend(one_score(runs, keys, scores[0], runs.score)).notes  # of the design, the same at all horizons
    fits = [spec.fit(table) for table, spec, _ in models]
    options: dict[str, Any] = {"adjust": adjust, "vcov": vcov, "across": across, "alpha": alpha, "ddf": ddf}
    families = families_of(fits, runs.algorithm, **options)
    tables = [table for _, _, table in families]
    changes, change_formula, flat = compare_changes(runs, keys, places, scores, tables, **options)
    horizons: dict[str, Answer] = {}
    for place, (_, used, _, note), fit, (pairs, decisions, _), (_, _, how) in zip(
        places, scored, fits, families, models, strict=True
    ):
        horizons[place.label] = _horizon(place, used, fit, pairs, decisions, tuple(filter(None, (note, how))))
    notes += [note for horizon in horizons.values() for note in horizon.notes]
    table = pd.concat(dict(zip(horizons, tables, strict=True)), names=["horizon", None])
    table = table.reset_index(level=0).reset_index(drop=True)
    overlaps = frozenset((a.label, b.label) for a, b in combinations(places, 2) if a.overlaps(b))
    adjust = families[0][0].adjust
    over = (
        "Holm's sharing of the level over horizons: the error holds for all comparisons together"
        if across == "holm"
        else "none over horizons: the error rate applies to each horizon separately"
    )
    facts = [
        f"p_value: {ADJUSTMENT_NAMES[adjust]} adjustment for the pairs of a horizon, {over}; alpha = {alpha:g}, "
        f"{DDF_NAMES[ddf]} degrees of freedom.",
        *(f"Model: {formula}" for formula in dict.fromkeys(fit.formula for fit in fits)),
    ]
    if change_formula:
        facts.append(f"Model of the changes between horizons (one score per run): {change_formula}")
    return Answer(
        question="horizons",
        title=f"Pairwise differences of {runs.score} at {len(places)} horizons of {runs.budget}",
        tables={"table": table, "changes": changes},
        values={
            "horizons": horizons,
            "labels": tuple(horizons),
            "change_formula": change_formula,
            "budget": str(runs.budget),
            "score": runs.score,
            "direction": runs.direction,
            "windows": windows,
            "adjust": adjust,
            "across": across,
            "ddf": ddf,
            "alpha": alpha,
        },
        facts=tuple(facts),
        findings=(
            *(sentence for horizon in horizons.values() for sentence in horizon.findings),
            *change_sentences(changes, table, runs.direction, overlaps),
        ),
        notes=tuple(dict.fromkeys([*notes, *flat, *scope])),
        figure="horizons_plot",
    )


def _horizon(
    place: Place,
    budgets: tuple[float, ...],
    fit: LmmFit,
    pairs: Comparisons,
    decisions: Decisions,
    notes: tuple[str, ...],
) -> Answer:
    """The comparison at one horizon."""
    printed = pairs.to_table()
    return Answer(
        question="horizon",
        title=f"Pairwise differences at {place.label}",
        tables={"table": pairs.to_frame()},
        values={
            "label": place.label,
            "place": place,
            "budgets": budgets,
            "formula": fit.formula,
            "fit": fit,
            "pairs": pairs,
            "decisions": decisions,
        },
        facts=(f"Model: {fit.formula}", *printed.notes),
        findings=(best_sentence(decisions, f"{'Over' if place.is_window else 'At'} {place.label}"),),
        notes=notes,
        printed=printed.frame,
    )


def _model(
    place: Place, runs: Runs, keys: pd.DataFrame, scored: tuple[Array, tuple[float, ...], bool, str], windows: str
) -> tuple[Runs, ModelSpec, str]:
    """The table of a horizon, its model, and what a reader must know."""
    scores, budgets, exact, _ = scored
    n = len(budgets)
    if not exact or (n > 1 and windows == "averaged"):
        table = one_score(runs, keys, scores, runs.score)
        note = f"At {place.label} windows='averaged' was used, since not all runs have scores at its budgets."
        return table, recommend(table).spec, "" if windows == "averaged" or not place.is_window else note
    if n > _MOST_EFFECTS and windows == "fixed":
        raise ArgumentError(
            f"windows='fixed' has one effect per budget, and there are {n} in {place.label}, more than "
            f"{_MOST_EFFECTS}. Use windows='averaged', or a narrower window."
        )
    table = rows_at(runs, budgets)
    spec = recommend(table, curves="model").spec
    if n == 1:
        return table, spec, ""
    # the effect of the budget, and the random effects that keep benchmarks from bending as one
    study, budget = table.study, str(table.budget)
    spec = spec.without(*(term for term in spec.terms if budget in term.columns))
    spec = spec.without(*(bar for bar in spec.bars if budget in bar.columns))
    spec = spec.with_term(Term.levels(budget)) if windows == "fixed" else spec.with_random(budget)
    if study.several_benchmarks:
        spec = spec.with_random(*study.instance, budget)
        groups = (*study.instance, table.algorithm, budget)
        if study.count(*groups) < table.n_rows:
            spec = spec.with_random(*groups)
        if study.sampled.noun == "family":
            family = str(study.sampled.column)
            spec = spec.with_random(family, budget).with_random(family, table.algorithm, budget)
    return table, spec, ""


# -------------------------------------------------------------------------------------------- tests at several horizons


ACROSS = ("holm", "none")
# Adjustments within a horizon that control the error of the whole family without random numbers.
WITHIN = ("stepdown", "singlestep", "tukey", "holm", "sidak", "bonferroni", "none")
_TESTED = ["left", "right", "estimate", "se", "df", "p_raw", "p_value", "significant", "ci_low", "ci_high"]
_CHANGES = [
    *("earlier", "later", "left", "right", "estimate_earlier", "estimate_later", "change"),
    *(*_TESTED[3:], "pattern"),
]
_EXAMPLES = 3  # of pairs that differ at one horizon only: more would bury the changes


def families_of(
    fits: Sequence[LmmFit], algorithm: str, *, adjust: str | None, vcov: str | None, across: str, alpha: float, ddf: str
) -> list[tuple[Comparisons, Decisions, pd.DataFrame]]:
    """Compare the algorithms in each fit, with the error over all of them under control.

    Of each fit: the pairs, with p-values adjusted within the fit and intervals at its level; the decisions at that
    level; and one row per pair: left, right, estimate, se, df, p_raw (of this test alone), p_value (adjusted within the
    fit and over fits), significant (missing without a test), ci_low, ci_high.
    """
    comparisons = [emmeans(fit, algorithm, ddf=ddf).pairs(adjust=adjust, vcov=vcov, alpha=alpha) for fit in fits]
    adjusted, levels = share_level([pairs.table["p_value"] for pairs in comparisons], alpha, across)
    families = []
    for pairs, p_value, level in zip(comparisons, adjusted, levels, strict=True):
        if level != alpha:
            half, estimate = pairs.half_widths(level), pairs.table["estimate"]
            table = pairs.table.assign(ci_low=estimate - half, ci_high=estimate + half)
            pairs = replace(pairs, table=table, level=1.0 - level)
        decisions, table = pairs.decisions(level), pairs.to_frame()
        decided = [decisions.decision.loc[a, b] for a, b in zip(table["left"], table["right"], strict=True)]
        p_raw = two_sided_p(table["t_ratio"].to_numpy(dtype=float), table["df"].to_numpy(dtype=float))
        table = table.assign(p_raw=p_raw, p_value=p_value, significant=pd.array(decided, dtype="boolean"))
        families.append((pairs, decisions, table[_TESTED]))
    return families


def share_level(p_values: Sequence[Any], alpha: float, across: str) -> tuple[list[Array], list[float]]:
    """Adjusted p-values over families, and the level at which each family is tested.

    >>> adjusted, levels = share_level([[0.01, 0.02], [0.03, 0.4]], 0.05, "holm")
    >>> [p.tolist() for p in adjusted], levels
    ([[0.02, 0.04], [0.04, 0.4]], [0.025, 0.05])
    """
    families = [np.asarray(p, dtype=float) for p in p_values]
    if across == "none":
        return families, [alpha] * len(families)
    n = len(families)
    largest = np.array([np.max(p[~np.isnan(p)], initial=0.0) for p in families])  # a family without tests stops nobody
    order = np.argsort(largest, kind="stable")
    divisors = n - np.arange(n)
    # the level from which on the first j families are significant as a whole and hand on their shares
    handed_on = np.concatenate([[0.0], np.maximum.accumulate(divisors * largest[order])])
    done = int(np.sum(below(handed_on[1:], alpha)))
    adjusted: list[Array] = [np.empty(0)] * n
    levels = [0.0] * n
    for position, family in enumerate(order):
        steps = np.arange(position + 1)
        candidates = np.maximum(divisors[steps, None] * families[family], handed_on[steps, None])
        adjusted[family] = np.minimum(1.0, candidates.min(axis=0))
        levels[family] = float(alpha / divisors[min(position, done)])
    return adjusted, levels


def best_sentence(decisions: Decisions, where: str) -> str:
    """Who has the best mean, which others are not shown to differ from it, and which were not tested against it."""
    means = np.array(decisions.means)
    tied = np.abs(means - means[0]) <= tolerance(means, decisions.se)
    first = decisions.levels[0]
    best = sorted(  # one, but for ties up to rounding; a tie needs no test
        name
        for name, equal in zip(decisions.levels, tied, strict=True)
        if name == first or (equal and not decisions.significant.loc[first, name])
    )
    others = [name for name in decisions.levels if name not in best]
    start = f"{where} {listed(best[:-1], most=8)} and {best[-1]} share" if len(best) > 1 else f"{where} {best[0]} has"
    start += " the best mean"
    if not others:
        return f"{start}."
    alike = (~decisions.decision.loc[best, others]).fillna(False).astype(bool)
    untested = decisions.undecided.loc[best, others]
    ties = [name for name in others if alike[name].any()]
    silent = [name for name in others if untested[name].any() and name not in ties]
    if not silent and not ties:
        return f"{start}, significantly better than {'the other' if len(others) == 1 else 'all others'}."
    if not silent and len(ties) == len(others) and alike.all(axis=None):
        return f"{start}, not significantly different from {'the other' if len(others) == 1 else 'any other'}."

    def whom(relation: pd.DataFrame, names: list[str]) -> str:
        return "it" if len(best) == 1 else "them" if relation[names].all(axis=None) else "at least one of them"

    parts = [start]
    if ties:
        parts.append(f"not significantly different from {whom(alike, ties)}: {listed(ties, most=8)}")
    if silent:
        parts.append(f"no test against {whom(untested, silent)} is possible for {listed(silent, most=8)}")
    return f"{'; '.join(parts)}."


# ------------------------------------------------------------------ changes between horizons


def compare_changes(
    runs: Runs,
    keys: pd.DataFrame,
    places: Sequence[Place],
    scores: Sequence[Array],
    tables: Sequence[pd.DataFrame],
    **options: Any,
) -> tuple[pd.DataFrame, str | None, list[str]]:
    """Test the change of each pairwise difference between each two horizons of which none is a part of the other.

    The table, the formula of the first change of a run (None if there is nothing to fit), and notes.
    """
    fits: dict[tuple[int, int], LmmFit | None] = {}
    notes: list[str] = []
    name = free_name(f"{runs.score}_change", keys.columns)
    for i, j in combinations(range(len(places)), 2):
        early, late = places[i], places[j]
        if early.within(late) or late.within(early):
            continue
        change = scores[j] - scores[i]
        if np.ptp(change) <= 1e-12 * max(np.abs(scores[i]).max(), np.abs(scores[j]).max()):
            overlap = early.overlaps(late)
            what = "differ by the same amount between" if overlap else "change by the same amount from"
            link = "and" if overlap else "to"
            notes.append(f"All runs {what} {early.label} {link} {late.label}: no test is needed.")
            fits[i, j] = None
        else:  # a model of the changes themselves: benchmarks may differ less in them than in the scores
            table = one_score(runs, keys, change, name)
            fits[i, j] = recommend(table).spec.fit(table)
    moving = {place: fit for place, fit in fits.items() if fit is not None}
    tested = [table for _, _, table in families_of(list(moving.values()), runs.algorithm, **options)]
    tests = dict(zip(moving, tested, strict=True))
    parts = []
    for i, j in fits:
        if (i, j) in tests:
            frame = tests[i, j]
        else:  # the same scores: there is no change to test
            frame = tables[i][["left", "right"]].assign(
                **dict.fromkeys(("estimate", "se", "ci_low", "ci_high"), 0.0),
                **dict.fromkeys(("df", "p_raw", "p_value"), np.nan),
                significant=pd.array([False] * len(tables[i]), dtype="boolean"),
            )
        frame = frame.rename(columns={"estimate": "change"}).assign(
            earlier=places[i].label,
            later=places[j].label,
            estimate_earlier=tables[i]["estimate"].to_numpy(),
            estimate_later=tables[j]["estimate"].to_numpy(),
        )
        significant = (part["significant"].fillna(False).astype(bool) for part in (frame, tables[i], tables[j]))
        frame["pattern"] = list(map(_pattern, *significant, frame["estimate_earlier"], frame["estimate_later"]))
        parts.append(frame[_CHANGES])
    changes = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_CHANGES)
    return changes, next((fit.formula for fit in moving.values()), None), notes


def _pattern(moved: bool, early: bool, late: bool, before: float, after: float) -> str:
    """What a change means for the comparison; "reverses" only if both signs are certain."""
    if not moved:
        return "not shown"
    if before * after < 0:
        return "reverses" if early and late else "changes"
    return "grows" if abs(after) > abs(before) else "shrinks"


def change_sentences(
    changes: pd.DataFrame, comparisons: pd.DataFrame, direction: str, overlaps: frozenset[tuple[str, str]]
) -> tuple[str, ...]:
    """What changes between horizons, and which contrasts between horizons must not be read as changes."""
    better = {}  # of a pair at a horizon, None if no difference is shown
    for row in comparisons.fillna({"significant": False}).to_dict("records"):
        side = "left" if (row["estimate"] < 0) == (direction == "minimize") else "right"
        better[row["horizon"], row["left"], row["right"]] = row[side] if row["significant"] else None
    changed, only_one, silent = [], [], 0
    for row in changes.to_dict("records"):
        early, late = (better[row[when], row["left"], row["right"]] for when in ("earlier", "later"))
        if row["pattern"] != "not shown":
            overlap = (row["earlier"], row["later"]) in overlaps
            changed.append(_changed(row, early, late, direction, overlap))
        elif (early is None) != (late is None):
            only_one.append(_not_a_change(row, early, late))
        else:
            silent += 1
    out = [*changed, *only_one[:_EXAMPLES]]
    if len(only_one) > _EXAMPLES:
        out.append(f"The same holds for {len(only_one) - _EXAMPLES} more pairs that differ at one horizon only.")
    if silent:
        one = "one other comparison" if out else "the one comparison"
        which = f"{'the other' if out else 'all'} {silent} comparisons" if silent > 1 else one
        out.append(f"No change is shown for {which} of two algorithms at two horizons.")
    return tuple(out)


def _changed(row: dict[Any, Any], early: str | None, late: str | None, direction: str, overlap: bool) -> str:
    gains = (row["change"] < 0) == (direction == "minimize")
    winner, loser = (row["left"], row["right"]) if gains else (row["right"], row["left"])
    low, high = sorted(np.sign(row["change"]) * row[end] for end in ("ci_low", "ci_high"))
    if early is None and late is None:
        rest = "neither is shown to be better at either"
    elif early == late:
        rest = f"{early} is better at both"
    elif early is not None and late is not None:
        rest = f"{early} is better at {row['earlier']}, {late} at {row['later']}"
    else:
        where, other = (row["earlier"], row["later"]) if early is not None else (row["later"], row["earlier"])
        rest = f"{early or late} is better at {where}, no difference is shown at {other}"
    what = (
        f"Over {row['later']} {winner} does better against {loser} than over {row['earlier']}, which overlaps it,"
        if overlap
        else f"From {row['earlier']} to {row['later']} {winner} gains on {loser}"
    )
    return (
        f"{what} by {format_number(abs(row['change']))} (interval {format_number(low)} to {format_number(high)}, "
        f"{p_text(row['p_value'])}): {rest}."
    )


def _not_a_change(row: dict[Any, Any], early: str | None, late: str | None) -> str:
    where, other = (row["earlier"], row["later"]) if early is not None else (row["later"], row["earlier"])
    better = early or late
    rest = row["right"] if better == row["left"] else row["left"]
    return (
        f"{better} is better than {rest} at {where} and not shown to be at {other}, but the difference does not change "
        f"significantly ({p_text(row['p_value'])}): this does not show that it depends on the budget."
    )
