"""The pairs of a study, decided in several ways: which decisions stay, and which depend on the way.

By other scores: a mean rank, a mean of min-max scores and a mean score are three questions. They have one answer where
algorithms differ by a shift; where one is more erratic than the others, or scores end at a bound, they need not.
For other populations: new families of benchmarks or new benchmarks of these, and families that nobody has named.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.bench.data.normalise import MOST_FIXED
from lmemtest.bench.data.per_run import CURVE_CHOICES, reduced
from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.modelling.recommend import fitted, model_of, recommend
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.options import DDF_METHODS, REPORT_ADJUSTMENTS, VCOV
from lmemtest.core.result import Answer, result
from lmemtest.core.rounding import below
from lmemtest.core.validate import check_choice, free_name
from lmemtest.core.verdicts import Verdict, ahead_or_behind
from lmemtest.core.words import counted, format_level, format_p, joined, p_text, plural
from lmemtest.errors import ArgumentError, DataWarning, DesignError, LmemtestError
from lmemtest.lmm.formula.bars import parse_formula
from lmemtest.lmm.hypotheses.mean_vectors import between_groups
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.emmeans import marginal_means
from lmemtest.lmm.model import ModelSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.checks.findings import RunsCheck
    from lmemtest.bench.data.normalise import Scale
    from lmemtest.bench.data.per_run import Curve
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Codes
    from lmemtest.lmm.formula.bars import ParsedFormula
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.lmm.model import LmmFit

    Way = tuple[str, str, Comparisons, str]


__all__ = [
    *("NOBODY", "Variants", "advantages", "better", "by_populations", "by_scores", "compared", "hypothesis_on"),
    *("name_groups", "on_another_score", "pairs_of", "populations_compared", "raw_runs"),
    *("scores_compared", "side_by_side", "undeclared_families", "what_differs"),
]

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
    codes, means = np.empty((len(ways), len(pairs)), dtype=np.int8), []
    for row, (name, (_, _, compared, direction)) in enumerate(ways.items()):
        gap[row], p[row] = _as_in(pairs, tested[name], advantages(tested[name], direction))
        decided = compared.decisions(alpha=alpha, direction=direction)
        codes[row] = decided.pairs(pairs["left"], pairs["right"])
        numbers = enumerate(zip(decided.levels, decided.means, decided.se, strict=True), start=1)
        means += [(name, level, place, mean, se) for place, (level, mean, se) in numbers]
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
    runs: Runs, options: Mapping[str, Any], *, population: str | None = None, curves: str | None = None
) -> tuple[Answer, Comparisons]:
    """The recommended model and all pairs by it.

    With the option `hold_seeds` the model has what seeds share without a test, as at the looks of a ledger.
    """
    per_run = reduced(runs, curves)
    model = model_of(per_run, population, hold_seeds=options.get("hold_seeds", False))
    fit = fitted(model, per_run, dispersion=options.get("dispersion"))
    return model, pairs_of(fit, per_run, options)


def pairs_of(fit: LmmFit, runs: Runs, options: Mapping[str, Any]) -> Comparisons:
    """All pairs of the algorithms by the options of an analysis: `alpha`, and `adjust`, `vcov`, `ddf` where given."""
    ddf = options.get("ddf", "satterthwaite")
    means = marginal_means(fit, (runs.algorithm,), ddf=ddf, alpha=options["alpha"])
    return means.pairs(adjust=options.get("adjust"), vcov=options.get("vcov"))


def checked_options(options: Mapping[str, Any]) -> ParsedFormula | None:
    """Each option of an analysis by its rule, as far as it needs no table; a formula of one's own, read."""
    formula, population, curves, dispersion = (
        options.get(name) for name in ("formula", "population", "curves", "dispersion")
    )
    choices = {"adjust": REPORT_ADJUSTMENTS, "vcov": VCOV, "ddf": DDF_METHODS, "curves": CURVE_CHOICES}
    for name, allowed in choices.items():
        if name in options and (name == "ddf" or options[name] is not None):
            check_choice(options[name], name, allowed)
    if not (dispersion is None or isinstance(dispersion, str)):
        raise ArgumentError(f"dispersion must be one column, got {dispersion!r}. Name the one whose levels scatter.")
    if formula is None:
        return None
    parsed = parse_formula(formula)
    if population is not None:
        raise ArgumentError(
            f"{setting('population', population)} and {named('formula')} each choose the model: give one of them. A "
            "random effect of families and algorithms makes families the sample."
        )
    if curves not in (None, "model"):
        raise ArgumentError(
            f"{setting('curves', curves)} reduces curves before the model, and {named('formula')} is for the rows as "
            f"they are: give one of them{advice('formula_per_run', how=curves)}."
        )
    return parsed


# ---------------------------------------------------------------------- by other scores

_NULL = {
    "rank": "mean ranks are equal, so that the runs of either algorithm are ahead of equally many others{within}",
    "minmax": "mean scores are equal, each{within} in units of the range of the scores there",
    "normalized_regret": "mean regrets are equal, each{within} in units of the range of the scores there",
    "zscore": "mean scores are equal, each{within} in units of the standard deviation of the scores there",
    "log": "geometric means are equal, as ratios of scores are compared and not differences",
    "regret": "mean scores are equal, as the same best score{within} is taken from all algorithms",
    "baseline": "mean scores are equal, each{within} as a share of {reference} there",
    "target": "mean scores are equal, each{within} as a share of the way from {reference} to {target}",
    "gap": "mean scores are equal, each{within} as a share of the best known one there",
    "improvability": "mean shares of the errors that the best known one is below them are equal{within}",
}
_DIFFERS = {
    "rank": "Equal mean ranks and equal mean scores are two hypotheses, and neither follows from the other. They part "
    "where one algorithm is more erratic than the others and scores are skewed or end at a bound: an algorithm that is "
    "mostly ahead and sometimes fails has a good mean rank and may have a bad mean score.",
    "spread": "The unit is set by the scores of all algorithms that take part, so these are not equal mean scores: "
    "where one algorithm is erratic, all differences are small in units of the range that it makes, and its own "
    "failures count for little.",
    "log": "An algorithm that varies more has a smaller geometric mean than another one of the same mean.",
    "regret": "",
    "baseline": "Benchmarks count by what scores are divided by, and where scores differ by factors, the mean of "
    "ratios makes the algorithm that is divided by look better than its like: another baseline may give another order. "
    "Geometric means (a comparison of logarithms) depend on no baseline.",
    "target": "Benchmarks count by the distance between the two references: where it is small, differences are large.",
    "gap": "Benchmarks count by the best known value: where it is near 0, differences are large.",
    "improvability": "A share of the error itself is at most 1, so that large errors count for little.",
}


def hypothesis_on(scale: Scale) -> str:
    """What a test of two algorithms on this scale takes for true until it is refuted.

    Examples
    --------
    >>> from lmemtest.bench.data.normalise import Scale
    >>> hypothesis_on(Scale(method="zscore", score="loss", direction="minimize", by=("task",)))
    'mean scores are equal, each within task in units of the standard deviation of the scores there'
    """
    within = f" within {' and '.join(scale.by)}" if scale.by else ""
    means = f"the mean of {scale.reference}" if scale.baseline is not None else scale.reference
    null = _NULL["target" if scale.target else scale.method]
    return null.format(within=within, reference=means, target=scale.target)


def what_differs(method: str, *, target: bool = False) -> str:
    """When the hypothesis on a scale is another one than equal mean scores; empty where it never is."""
    return _DIFFERS["target" if target else "spread" if method in ("minmax", "normalized_regret", "zscore") else method]


NO_PROOF = (
    "Where one test finds a difference and another does not, the claim holds for its own mean. It does not show that "
    "the two disagree: the other test may lack power."
)


def by_scores(runs: Runs, methods: Sequence[str] | None, alpha: float) -> Variants:
    """The raw score beside normalised ones: that of the runs, or ranks, unless `methods` name others.

    Normalised scores have a fixed effect of each of up to 100 benchmarks; of more, all scores have the model of the raw
    one, with random effects of benchmarks.
    """
    raw = raw_runs(runs)
    if methods is None:
        scaled = [runs if raw is not None else runs.normalize("rank")]
    else:
        source = runs if raw is None else raw
        scaled = [
            runs if runs.scale is not None and method == runs.scale.method
            else source.normalize(method)
            for method in methods
        ]  # fmt: skip
    raw = runs if raw is None else raw
    decided = [(one, _decided(one, alpha, raw)) for one in scaled]
    return scores_compared(decided, _decided(raw, alpha), alpha)


def raw_runs(runs: Runs) -> Runs | None:
    """The runs with the score from which theirs was made; None for scores as they were measured."""
    scale = runs.scale
    if scale is None:
        return None
    raw = type(runs)(runs.frame, **{**runs.roles(), "score": scale.score, "direction": scale.direction})
    return raw.remembering(curve=runs.curve, scale=None)


def scores_compared(of_scores: Sequence[tuple[Runs, Comparisons]], of_raw: Comparisons, alpha: float) -> Variants:
    """The pairs of normalised runs beside those of the raw score."""
    ways: dict[str, Way] = {}
    described = []
    scales = [runs.scale for runs, _ in of_scores if runs.scale is not None]
    for (runs, pairs), scale in zip(of_scores, scales, strict=True):
        words = _in_words(runs.score, runs.curve, scale)
        null, differs = hypothesis_on(scale), what_differs(scale.method, target=bool(scale.target))
        meaning = f"the hypothesis of a pair is that {null}"
        ways[runs.score] = (f"by mean {words[0]}", meaning, pairs, runs.direction)
        described += [differs] if differs else []
    raw = scales[0].score
    meaning = "the hypothesis of a pair is that mean scores are equal"
    ways[raw] = (f"by mean {words[1]}", meaning, of_raw, scales[0].direction)
    variants = side_by_side(ways, of="score", alpha=alpha, described=tuple(dict.fromkeys(described)))
    one_sided = (~variants.alike & ~variants.opposite).any()
    return replace(variants, notes=(NO_PROOF,)) if one_sided else variants


def _in_words(score: str, curve: Curve | None, scale: Scale) -> tuple[str, str]:
    """A score and the one it was made of: those of curves that were put on a scale afterwards say so."""
    if curve is None or not score.startswith(f"{scale.score}_"):
        return score, scale.score
    return f"rank of {curve.what}" if scale.method == "rank" else score, curve.what


def _decided(runs: Runs, alpha: float, raw: Runs | None = None) -> Comparisons:
    """All pairs; of scores on many benchmarks by the model of the raw score, see `MOST_FIXED`."""
    if raw is None or not runs.study.several_benchmarks or runs.study.count(runs.benchmark) <= MOST_FIXED:
        return compared(runs, {"alpha": alpha})[1]
    model = recommend(runs)
    spec = replace(recommend(raw).spec, response=model.runs.score)
    return pairs_of(fitted(model, model.runs, spec.parsed), model.runs, {"alpha": alpha})


def on_another_score(
    runs: Runs,
    check: RunsCheck,
    pairs: Comparisons,
    recommendation: Answer,
    parsed: ParsedFormula | None,
    options: dict[str, Any],
) -> tuple[Variants | None, Decisions | None]:
    """The same pairs by the raw score or by ranks, and the decisions by ranks; None where there is nothing beside."""
    other = raw_runs(runs) or (_ranked(runs, check, pairs.estimates) if parsed is None else None)
    beside = None if other is None else _pairs_beside(runs, other, parsed, recommendation, options)
    if other is None or beside is None:
        return None, None
    alpha = options["alpha"]
    if runs.scale is not None:
        return scores_compared([(runs, pairs)], beside, alpha), None
    return scores_compared([(other, beside)], pairs, alpha), beside.decisions(alpha=alpha, direction=other.direction)


def _ranked(runs: Runs, check: RunsCheck, means: Estimates) -> Runs | None:
    """The runs with ranks within benchmarks for a score, where few benchmarks decide its means or scales differ."""
    shape = means.advantage_shape
    if runs.benchmark is None or not (check.scales_differ or (shape is not None and shape.few_decide)):
        return None
    if check.kind.kind == "ranks":
        return None
    with warnings.catch_warnings():  # of benchmarks on which all scores are equal, which the check has named
        warnings.simplefilter("ignore", DataWarning)
        try:
            return runs.normalize("rank")
        except LmemtestError:  # a report is not lost because a table has no ranks
            return None


def _pairs_beside(
    runs: Runs, other: Runs, parsed: ParsedFormula | None, chosen: Answer, options: dict[str, Any]
) -> Comparisons | None:
    """The pairs by the same model of the same runs with another score; None where there is none to compare with.

    Scores within benchmarks have an effect of each benchmark, of many a random one: see `MOST_FIXED`.
    """
    if parsed is not None and parsed.response_function is not None:
        return None
    population = chosen.population
    try:
        if parsed is None and (runs.scale is not None or runs.study.count(runs.benchmark) <= MOST_FIXED):
            same = population if runs.study.families or population == "run" else None
            model = model_of(other, same, hold_seeds=options["hold_seeds"])
            fit = fitted(model, other, dispersion=options["dispersion"])
        else:
            spec = replace(chosen.spec if parsed is None else ModelSpec.of(parsed), response=other.score)
            fit = fitted(chosen, other, spec.parsed, options["dispersion"])
        return pairs_of(fit, other, options)
    except LmemtestError:  # a report on one score is not lost because the other one has no model
        return None


# ---------------------------------------------------------------------- for other populations

_SAMPLES = ("family", "benchmark")  # populations beyond these benchmarks
_SEPARATORS = re.compile(r"[-_/:.\s]+")
_IN_GROUPS = 0.8  # of the benchmarks share their group with another one, where names make groups
_MOST_COLUMNS = 20  # without a role, that are looked at


def by_populations(runs: Runs, alpha: float) -> Variants:
    """The pairs of the recommended model for new families and for new benchmarks of these families.

    Raises
    ------
    DesignError
        If there are no families, too few, or one of the models is not identified.
    """
    used, pairs = compared(runs, {"alpha": alpha}, curves="model")
    variants = populations_compared(runs, used, pairs, {"alpha": alpha})
    if variants is None:
        raise DesignError(
            "of='population' compares claims about new families and about new benchmarks of these, and the runs have "
            f"no families, fewer than {FEWEST_FAMILIES}, or too few benchmarks in them for one of the two models. Name "
            "them: Runs(..., family=...)."
        )
    return variants


def populations_compared(runs: Runs, used: Answer, pairs: Comparisons, options: Mapping[str, Any]) -> Variants | None:
    """The pairs of the recommended model beside those for the other population; None where there is no other one.

    Families that are too few to be taken for a sample are none. `options` are those of the pairs, as in `compared`.
    """
    families = runs.study.families
    if not families or used.population not in _SAMPLES:
        return None
    if used.population == "benchmark" and max(runs.study.count(*level) for level in families) < FEWEST_FAMILIES:
        return None
    other = next(name for name in _SAMPLES if name != used.population)
    try:
        model, beside = compared(runs, options, population=other, curves="model")
    except LmemtestError:  # too few families, or a model that these runs do not identify
        return None
    both = {used.population: (used, pairs), other: (model, beside)}
    claims = {name: both[name][0].claim for name in _SAMPLES}
    ways = {
        name: (f"for {claim}", f"claims about {claim}, by {both[name][0].formula}", both[name][1], runs.direction)
        for name, claim in claims.items()
    }
    among = " and ".join(f"for {claim}" for claim in claims.values())
    return side_by_side(ways, of="population", among=among, alpha=options["alpha"])


# ---------------------------------------------------------------------- families that nobody named


def undeclared_families(runs: Runs, pairs: Comparisons, options: Mapping[str, Any]) -> Answer | None:
    """Do benchmarks that nobody called families share their advantages? Groups by names and columns, and their test.

    Benchmarks named ``space1-adult``, ``space1-bank``, or with a column that is the same on several of them, may be
    families. If advantages are shared within them and nobody says so, claims about new families are too certain: with 5
    families of 4 benchmarks that hold 30 % of the variance of advantages, some of three equal algorithms differ in 15 %
    of the tables.

    Returns
    -------
    Answer or None
        The grouping in which advantages differ most; None where nothing groups the benchmarks, or families have a role,
        or errors do not count benchmarks. Its table has the family of each benchmark. Values: ``column`` that makes the
        groups (None: the names of the benchmarks), ``n_families``, ``test`` (`FTest`: whether advantages differ
        between the groups by more than within them), ``p_value`` (adjusted for the groupings tried), ``shows`` (whether
        it is below `alpha`), ``significant`` (pairs of algorithms that differ significantly with these families as the
        sample; None where they were not taken for one).
    """
    moderate, alpha = pairs.estimates.moderate, options["alpha"]
    if runs.family or moderate is None or moderate.robust.cluster != (runs.benchmark,):
        return None
    benchmarks = list(runs.study.levels(str(runs.benchmark)))  # in the order of the clusters
    groupings = _groupings(runs, benchmarks)
    rows, scores = moderate.advantages()
    if not groupings or len(rows) < 2:
        return None
    tests = []
    for column, families in groupings.items():
        groups = np.unique([families[b] for b in benchmarks], return_inverse=True)[1]
        tests.append((column, families, between_groups(scores, groups)))
    column, families, test = min(tests, key=lambda item: np.nan_to_num(item[2].p_value, nan=2.0))
    if np.isnan(test.p_value):
        return None
    p = min(1.0, len(tests) * test.p_value)
    shows, n_families = bool(below(p, alpha)), len(set(families.values()))
    significant = None
    if shows and n_families >= FEWEST_FAMILIES and not isinstance(runs.frame, nw.LazyFrame):
        significant = _significant_with(runs, column or None, families, options)
    values = {"column": column or None, "n_families": n_families, "test": test}
    return Answer(
        question="undeclared_families",
        title="Groups of benchmarks that have no role as families",
        tables={"families": pd.DataFrame({"benchmark": list(families), "family": list(families.values())})},
        values={**values, "p_value": p, "level": alpha, "shows": shows, "significant": significant},
    )


def _significant_with(
    runs: Runs, column: str | None, families: dict[object, str], options: Mapping[str, Any]
) -> int | None:
    """Pairs that differ with these groups as families; None where they have no model: a report is not lost by that."""
    frame, roles = runs.frame, runs.roles()
    if column is None:
        column = free_name(f"{runs.benchmark}_family", runs.columns)
        groups = [families[b] for b in frame[str(runs.benchmark)].to_list()]
        frame = frame.with_columns(nw.new_series(column, groups, nw.String(), backend=frame.implementation))
    roles["metafeatures"] = tuple(name for name in roles["metafeatures"] if name != column)
    roles["ignore"] = tuple(name for name in roles["ignore"] if name != column)
    with_roles = type(runs)(frame, **{**roles, "family": (column,)})
    try:
        _, pairs = compared(with_roles, options, curves="model")
        decided = pairs.decisions(alpha=options["alpha"], direction=runs.direction)
    except LmemtestError:
        return None
    return decided.n_significant


def _groupings(runs: Runs, benchmarks: list[object]) -> dict[str, dict[object, str]]:
    """The group of each benchmark, by the column that makes the groups ("" for the names of the benchmarks)."""
    name, study = str(runs.benchmark), runs.study
    schema = runs.frame.collect_schema()
    others = [] if isinstance(runs.frame, nw.LazyFrame) else [
        column for column in runs.columns
        if column not in (*study.columns, runs.score, runs.failed) and not runs.frame[column].is_null().any()
    ]  # fmt: skip
    text = [column for column in dict.fromkeys((*study.kinds, *others)) if not schema[column].is_numeric()]
    groupings = {}
    for column in text[:_MOST_COLUMNS]:
        if not 1 < study.count(column) <= len(benchmarks) / 2 or study.count(name, column) != len(benchmarks):
            continue
        pairs = study.distinct([name, column])
        groupings[column] = dict(zip(pairs[name], map(format_level, pairs[column]), strict=True))
    by_names = name_groups([b if isinstance(b, str) else "" for b in benchmarks])
    if by_names is not None and not any(_same(by_names, [f[b] for b in benchmarks]) for f in groupings.values()):
        groupings[""] = dict(zip(benchmarks, by_names, strict=True))
    return groupings


def _same(first: list[str], second: list[str]) -> bool:
    """Whether two columns make the same groups."""
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def name_groups(names: Sequence[str]) -> list[str] | None:
    """The groups that the first parts of names make, else the last parts; None where they make none.

    Examples
    --------
    >>> name_groups(["f1_d2", "f1_d5", "f2_d2", "f2_d5"])
    ['f1', 'f1', 'f2', 'f2']
    >>> name_groups(["adult", "bank-marketing", "car", "letter"]), name_groups(["task1", "task2", "task3", "task4"])
    (None, None)
    """
    parts = [[part for part in _SEPARATORS.split(name) if part] for name in names]
    if any(len(part) < 2 for part in parts):
        return None
    for end in (0, -1):
        groups = [part[end] for part in parts]
        sizes = Counter(groups)
        if 2 <= len(sizes) <= len(names) / 2 and sum(sizes[g] > 1 for g in groups) >= _IN_GROUPS * len(groups):
            return groups
    return None
