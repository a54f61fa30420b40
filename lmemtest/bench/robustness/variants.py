"""The pairs of a study, decided in several ways: which decisions stay, and which depend on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.per_run import CURVE_CHOICES, reduced
from lmemtest.bench.modelling.recommend import fitted, model_of, recommend
from lmemtest.core.options import DDF_METHODS, REPORT_ADJUSTMENTS, VCOV
from lmemtest.core.result import Answer, result
from lmemtest.core.rounding import below
from lmemtest.core.validate import check_choice
from lmemtest.core.verdicts import Verdict, ahead_or_behind
from lmemtest.core.words import counted, format_p, joined, p_text, plural
from lmemtest.errors import ArgumentError, FormulaError
from lmemtest.lmm.formula.bars import parse_formula
from lmemtest.lmm.means.emmeans import marginal_means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Codes
    from lmemtest.lmm.formula.bars import ParsedFormula
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.model import LmmFit

    Way = tuple[str, str, Comparisons, str]


__all__ = ["NOBODY", "Variants", "advantages", "better", "side_by_side"]

NOBODY = "-"  # neither of two is significantly better
_TIED = 1e-7  # of the standard error: rounding
_MOST = 8  # names in a list


@result
class Variants(Answer):
    """The same pairs of algorithms, decided in several ways.

    Attributes
    ----------
    of : {"score", "failures", "population", "test"}
        What the ways differ in.
    phrases : dict of str to str
        Each way in a sentence: "by mean loss".
    pairs : pandas.DataFrame
        ``left`` and ``right`` of every pair.
    codes : numpy.ndarray of int8, (ways, pairs)
        The `lmemtest.core.verdicts.Verdict` on left, compared with right.
    tables, values, ...
        As in `Answer`. The first table has a row for each pair, what every way says of it, and ``alike``; `overview`
        says how many pairs get the same decision, `changes` has a sentence on each that is not. Scores, failures and
        populations have `advantage` and `p_value`, (ways, pairs): by how much left is better, on the scale of the way,
        and p-values adjusted for all pairs of a way, NaN where a way does not test a pair; `meanings`, `counts`, `best`
        and `alpha`. Tests have `rankings`, by their names.
    """

    of: str
    phrases: Mapping[str, str]
    pairs: pd.DataFrame
    codes: Codes

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Which way tests which pair, ``(ways, pairs)``; a test that cannot judge a pair finds no difference."""
        return np.asarray((self.codes != Verdict.NOT_TESTED) | (self.of == "test"))

    @property
    def comparable(self) -> NDArray[np.bool_]:
        """Pairs that two ways test."""
        return np.asarray(self.tested.sum(axis=0) > 1)

    @property
    def alike(self) -> NDArray[np.bool_]:
        """Pairs of which all ways that test them say that the same one is better, or that none is."""
        winner = np.where(ahead_or_behind(self.codes), self.codes, Verdict.NOT_SIGNIFICANT)
        low, high = (np.where(self.tested, winner, fill) for fill in (Verdict.ABSENT, Verdict.WORSE))
        return np.asarray((low.min(axis=0) == high.max(axis=0)) | ~self.tested.any(axis=0))

    @property
    def opposite(self) -> NDArray[np.bool_]:
        """Pairs of which two ways find opposite winners."""
        return np.asarray((self.codes == Verdict.BETTER).any(axis=0) & (self.codes == Verdict.WORSE).any(axis=0))

    def changed(self) -> pd.DataFrame:
        """The rows of the table whose decision depends on the way, opposite ones first."""
        rows = np.flatnonzero(~self.alike)
        return self.to_frame().iloc[rows[np.argsort(~self.opposite[rows], kind="stable")]]

    def significant(self, name: str) -> int:
        """How many pairs differ significantly in one way."""
        return int(ahead_or_behind(self.codes[list(self.phrases).index(name)]).sum())


def side_by_side(
    ways: Mapping[str, Way],
    *,
    of: str,
    alpha: float,
    among: str = "",
    lead: str = "",
    described: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    noun: str = "algorithm",
) -> Variants:
    """What several ways say of the same pairs, those of the first.

    `among` are all of them in a sentence ("under the policies worst and drop"), `lead` comes before the overview,
    `described` after what each does.
    """
    phrases = {name: phrase for name, (phrase, *_) in ways.items()}
    meanings = {name: meaning for name, (_, meaning, *_) in ways.items()}
    among = among or joined(list(phrases.values()))
    tested = {name: compared.to_frame() for name, (_, _, compared, _) in ways.items()}
    pairs = next(iter(tested.values()))[["left", "right"]].reset_index(drop=True)
    gap, p = (np.empty((len(ways), len(pairs))) for _ in range(2))
    means = []
    for row, (name, (_, _, compared, direction)) in enumerate(ways.items()):
        gap[row], p[row] = _as_in(pairs, tested[name], advantages(tested[name], direction))
        order = compared.decisions(alpha=alpha, direction=direction).levels
        estimates = compared.estimates
        of_level = dict(zip(estimates.labels(), zip(estimates.estimate, estimates.se, strict=True), strict=True))
        means += [(name, level, place, *of_level[level]) for place, level in enumerate(order, start=1)]
    codes = np.where(below(p, alpha) & (gap != 0.0), np.sign(gap), 0.0)
    codes = np.where(np.isnan(p), float(Verdict.NOT_TESTED), codes).astype(np.int8)
    words = {int(Verdict.NOT_SIGNIFICANT): NOBODY, int(Verdict.NOT_TESTED): "not tested"}
    who = {name: better(row, pairs, words) for name, row in zip(ways, codes, strict=True)}
    taken = {"left", "right", "alike"}  # by other columns of the table
    decisions = pd.concat(
        [pairs.assign(variant=name, advantage=gap[row], p_value=p[row], better=who[name])
         for row, name in enumerate(ways)], ignore_index=True,
    )  # fmt: skip
    variants = Variants(
        question="robustness",
        title=f"Decisions {among}",
        tables={
            "table": pairs.assign(**{phrases[name] if name in taken else name: names for name, names in who.items()}),
            "decisions": decisions[["variant", "left", "right", "advantage", "p_value", "better"]],
            "means": pd.DataFrame(means, columns=["variant", "algorithm", "place", "mean", "se"]),
        },
        facts=(
            f"{NOBODY}: neither is significantly better at alpha = {alpha:.3g}, for all pairs of a column together.",
            *(f"{name}: {meaning}." for name, meaning in meanings.items()),
            *described,
        ),
        notes=notes,
        formats={"p_value": partial(format_p, level=alpha)},
        of=of,
        phrases=phrases,
        pairs=pairs,
        codes=codes,
    )
    table = variants.table.assign(alike=variants.alike)
    overview, counts = _overview(variants, among, f"{lead}; " if lead else "", plural(noun)), _counts(variants)
    best, changes = _best(variants.means, phrases, among), _changes(variants, p, alpha)
    return replace(
        variants,
        tables={**variants.tables, "table": table},
        values={"meanings": meanings, "advantage": gap, "p_value": p, "alpha": alpha, "among": among, "lead": lead,
                "described": described, "overview": overview, "counts": counts, "best": best, "changes": changes},
        findings=(overview, *([counts] if changes else []), best, *changes),
        printed=table.assign(alike=np.where(variants.alike, "yes", "no")),
    )  # fmt: skip


def advantages(pairs: pd.DataFrame, direction: str) -> Array:
    """By how much left is better; rounding is a tie."""
    gap, se = (pairs[name].to_numpy(dtype=float) for name in ("estimate", "se"))
    tied = np.isfinite(se) & (np.abs(gap) <= _TIED * se)
    return np.where(tied, 0.0, -gap if direction == "minimize" else gap)


def _as_in(pairs: pd.DataFrame, table: pd.DataFrame, advantage: Array) -> tuple[Array, Array]:
    """Advantages and p-values in the order and orientation of other pairs; NaN where the table has no such pair."""
    ends = zip(table["left"], table["right"], strict=True)
    numbers = dict(zip(ends, zip(advantage, table["p_value"], strict=True), strict=True))
    gap, p = np.empty(len(pairs)), np.empty(len(pairs))
    for i, (left, right) in enumerate(zip(pairs["left"], pairs["right"], strict=True)):
        if (left, right) in numbers:
            gap[i], p[i] = numbers[left, right]
        else:
            back, p[i] = numbers.get((right, left), (np.nan, np.nan))
            gap[i] = -back
    return gap, p


def better(codes: Codes, pairs: pd.DataFrame, words: Mapping[int, str]) -> list[str]:
    """Who is better of each pair, or the word for another verdict."""
    return [
        words.get(code, left if code == Verdict.BETTER else right)
        for code, left, right in zip(codes.tolist(), pairs["left"], pairs["right"], strict=True)
    ]


# ---------------------------------------------------------------------- words


def _overview(variants: Variants, among: str, lead: str, compared: str) -> str:
    """How many pairs get the same decision."""
    count = int(variants.comparable.sum())
    if not count:
        return f"{lead}no pair of {compared} can be tested in two ways {among}.".lstrip()
    thin = int((variants.tested.sum(axis=0) < len(variants.codes)).sum())
    if thin:
        among += f" that test {'it' if count == 1 else 'them'} ({counted(thin, 'pair')} cannot be tested by all)"
    n_alike = int((variants.alike & variants.comparable).sum())
    if n_alike == count:
        which = f"all {count:,} pairs of {compared} get" if count > 1 else f"the pair of {compared} gets"
        text = f"{which} the same decision {among}."
    else:
        opposite = int(variants.opposite.sum())
        more = f"; {opposite:,} {'is' if opposite == 1 else 'are'} decided in opposite directions" if opposite else ""
        which = f"{n_alike:,} of {counted(count, 'pair')} of {compared} {'gets' if n_alike == 1 else 'get'}"
        text = f"{which} the same decision {among}{more}."
    return f"{lead}{text}" if lead else f"{text[:1].upper()}{text[1:]}"


def _counts(variants: Variants) -> str:
    """How many pairs differ significantly in each way."""
    parts = [f"{variants.significant(name):,} {phrase}" for name, phrase in variants.phrases.items()]
    return f"Significant differences: {joined(parts, most=_MOST)}."


def _best(means: pd.DataFrame, phrases: Mapping[str, str], among: str) -> str:
    """Who has the best mean."""
    best = means[means["place"] == 1]
    names: dict[Any, list[str]] = {}
    for name, variant in zip(best["algorithm"], best["variant"], strict=True):
        names.setdefault(name, []).append(phrases[variant])
    if len(names) == 1:
        return f"{next(iter(names))} has the best mean {among}."
    parts = [f"{name} {joined(ways, most=_MOST)}" for name, ways in names.items()]
    return f"The best mean differs: {'; '.join(parts)}."


def _changes(variants: Variants, p_values: Array, alpha: float) -> tuple[str, ...]:
    """What each way says of each pair whose decision depends on it."""
    sentences = []
    names = list(zip(variants.pairs["left"], variants.pairs["right"], strict=True))
    for pair in variants.changed().index:
        left, right = names[pair]
        ways: dict[int, list[str]] = {}
        for code, p, phrase in zip(variants.codes[:, pair], p_values[:, pair], variants.phrases.values(), strict=True):
            ways.setdefault(int(code), []).append(f"{phrase} ({p_text(p, level=alpha)})")
        heads = {
            Verdict.BETTER: f"{left} is better than {right} ",
            Verdict.WORSE: f"{right} is better than {left} ",
            Verdict.NOT_SIGNIFICANT: "no difference is found ",
        }
        parts = [head + joined(ways[code], most=_MOST) for code, head in heads.items() if code in ways]
        sentences.append(f"{'; '.join(parts)}.")
    return tuple(sentences)


# ---------------------------------------------------------------------- one way


def compared(
    runs: Runs,
    options: Mapping[str, Any],
    *,
    population: str | None = None,
    curves: str | None = None,
    parsed: ParsedFormula | None = None,
) -> tuple[Answer, LmmFit, Comparisons]:
    """The recommended model, its fit, or that of one's own model of the rows as they are, and all pairs."""
    if parsed is None:
        runs = reduced(runs, curves)
    model = model_of(runs, population)
    fit = fitted(model, runs, parsed, options.get("dispersion"))
    return model, fit, pairs_of(fit, runs, options)


def pairs_of(fit: LmmFit, runs: Runs, options: Mapping[str, Any]) -> Comparisons:
    """All pairs of the algorithms by the options of an analysis: `alpha`, and `adjust`, `vcov`, `ddf` where given."""
    ddf = options.get("ddf", "satterthwaite")
    means = marginal_means(fit, (runs.algorithm,), ddf=ddf, alpha=options["alpha"])
    return means.pairs(adjust=options.get("adjust"), vcov=options.get("vcov"))


# ------------------------------------------------------------------------------------------------- the options of one


def checked_options(options: Mapping[str, Any]) -> ParsedFormula | None:
    """Each option of an analysis by its rule, as far as it needs no table; a formula of one's own, read."""
    formula, population, curves, dispersion = (
        options[name] for name in ("formula", "population", "curves", "dispersion")
    )
    choices = {"adjust": REPORT_ADJUSTMENTS, "vcov": VCOV, "ddf": DDF_METHODS, "curves": CURVE_CHOICES}
    for name, allowed in choices.items():
        if name == "ddf" or options[name] is not None:
            check_choice(options[name], name, allowed)
    if not (dispersion is None or isinstance(dispersion, str)):
        raise ArgumentError(f"dispersion must be one column, got {dispersion!r}. Name the one whose levels scatter.")
    if formula is None:
        return None
    parsed = parse_formula(formula)
    if population is not None:
        raise ArgumentError(
            f"population={population!r} chooses the model, and formula= is one of your own: give one of them. A random "
            "effect of families and algorithms makes families the sample."
        )
    if curves not in (None, "model"):
        raise ArgumentError(
            f"curves={curves!r} reduces curves before the model, and formula= is one of your own for the rows as they "
            f"are: give one of them, or the formula for runs.per_run({curves!r})."
        )
    return parsed


def check_formula(parsed: ParsedFormula, runs: Runs) -> None:
    """Refuse a formula of another score, of columns that are not there, or without the algorithms."""
    if parsed.response != runs.score:
        raise FormulaError(
            f"formula models {parsed.response!r}, but the score of these runs is {runs.score!r}. Write "
            f"{runs.score!r} on the left, or give the runs another score."
        )
    parsed.check_columns(runs.columns)
    if runs.algorithm not in {name for term in parsed.terms for name in term.columns}:
        raise FormulaError(
            f"formula must have the algorithm {runs.algorithm!r} in its fixed part, because its means are compared; "
            f"got {parsed.text!r}. Write for instance {recommend(runs, curves='model').formula!r}."
        )
