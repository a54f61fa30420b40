"""Which hypothesis a comparison of normalised scores tests, and whether raw scores decide alike.

A mean rank, a mean of min-max scores and a mean score are three questions. They have one answer where algorithms differ
by a shift; where one is more erratic than the others, or scores end at a bound, they need not.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.normalise import MOST_FIXED
from lmemtest.bench.modelling.adequacy import shape_of
from lmemtest.bench.modelling.recommend import fitted, recommend
from lmemtest.bench.robustness.variants import Variants, compared, pairs_of, side_by_side
from lmemtest.core.result import Answer
from lmemtest.core.validate import free_name
from lmemtest.errors import DataWarning, LmemtestError
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.model import ModelSpec

if TYPE_CHECKING:
    from lmemtest.bench.checks.findings import RunsCheck
    from lmemtest.bench.data.normalise import Scale
    from lmemtest.bench.data.per_run import Curve
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.robustness.variants import Way
    from lmemtest.lmm.formula.bars import ParsedFormula
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.means.estimates import Estimates

__all__ = [
    "by_scores",
    "hypothesis_on",
    "normalized",
    "on_another_score",
    "raw_runs",
    "scores_compared",
    "what_differs",
]

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
        scaled = [runs if raw is not None else normalized(runs, "rank")]
    else:
        source = runs if raw is None else raw
        scaled = [
            runs if runs.scale is not None and method == runs.scale.method
            else normalized(source, method)
            for method in methods
        ]  # fmt: skip
    raw = runs if raw is None else raw
    decided = [(one, _decided(one, alpha, raw)) for one in scaled]
    return scores_compared(decided, _decided(raw, alpha), alpha)


def normalized(runs: Runs, method: str) -> Runs:
    """The runs normalised under a name that their table does not have yet."""
    return runs.normalize(method, name=free_name(f"{runs.score}_{method}", runs.columns))


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
        return compared(runs, {"alpha": alpha})[-1]
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
    shape = shape_of(means, runs)
    if runs.benchmark is None or not (check.scales_differ or (shape is not None and shape.few_decide)):
        return None
    if check.kind.kind == "ranks":
        return None
    with warnings.catch_warnings():  # of benchmarks on which all scores are equal, which the check has named
        warnings.simplefilter("ignore", DataWarning)
        try:
            return normalized(runs, "rank")
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
            return compared(other, options, population=same, curves="model")[-1]
        spec = replace(chosen.spec if parsed is None else ModelSpec.of(parsed), response=other.score)
        return pairs_of(fitted(chosen, other, spec.parsed, options["dispersion"]), other, options)
    except LmemtestError:  # a report on one score is not lost because the other one has no model
        return None
