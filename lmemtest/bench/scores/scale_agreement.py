"""Which hypothesis a comparison of normalised scores tests, and whether raw scores decide alike.

A mean rank, a mean of min-max scores and a mean score are three questions. They have one answer where algorithms differ
by a shift; where one is more erratic than the others, or scores end at a bound, they need not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.normalise import METHODS
from lmemtest.bench.data.runs import require_runs, with_curve
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.modelling.relative import MOST_FIXED
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import p_text
from lmemtest.errors import ArgumentError
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.normalise import Scale
    from lmemtest.bench.data.runs import Runs

    FloatArray = NDArray[np.float64]

__all__ = [
    "ScaleAgreement",
    "better_by",
    "decisions_compared",
    "free_name",
    "hypothesis_on",
    "raw_runs",
    "scale_agreement",
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
    anchors = scale.anchors
    if anchors is None:
        return _NULL[scale.method].format(within=within)
    means = f"the mean of {anchors.reference}" if anchors.baseline is not None else anchors.reference
    null = _NULL["target" if anchors.target else scale.method]
    return null.format(within=within, reference=means, target=anchors.target)


def what_differs(method: str, *, target: bool = False) -> str:
    """When the hypothesis on a scale is another one than equal mean scores; empty where it never is."""
    return _DIFFERS["target" if target else "spread" if method in ("minmax", "normalized_regret", "zscore") else method]


@result
class ScaleAgreement(Result):
    """The same comparison on a normalised and on the raw score.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair of algorithms: ``left``, ``right``; ``advantage`` and ``p_value`` on the normalised score,
        ``raw_advantage`` and ``raw_p_value`` on the raw one (advantages are positive where left is better, p-values
        adjusted); ``order`` ("same", "reversed", "tied") of the means; ``decision``: both significant ("same",
        "opposite"), one ("score only", "raw only"), "neither", or "not tested".
    score, raw : str
        The normalised and the raw score.
    method : str
        How one was made from the other, as in `Runs.normalize`.
    hypothesis, differs : str
        What is tested on the normalised score, and when that is not the equality of mean scores.
    alpha : float
        Level of the decisions, on each scale for the whole family of pairs.
    """

    formats = {"p_value": "p", "raw_p_value": "p"}

    table: pd.DataFrame
    score: str
    raw: str
    method: str
    hypothesis: str
    differs: str
    alpha: float

    def disagreements(self) -> pd.DataFrame:
        """The rows of pairs that are decided otherwise on the two scores, opposite decisions first."""
        order = {"opposite": 0, "score only": 1, "raw only": 2}
        found = self.table[self.table["decision"].isin(list(order))]
        return found.sort_values("decision", key=lambda column: column.map(order), kind="stable")

    def overview(self, *, of_raw: bool = False) -> str:
        """How many pairs are decided alike; with `of_raw` the raw score is the one that is reported."""
        first, second = (self.raw, self.score) if of_raw else (self.score, self.raw)
        tested = int((self.table["decision"] != "not tested").sum())
        other = self.disagreements()
        if not tested:
            return f"No pair could be compared by mean {first} and by mean {second}."
        if other.empty:
            which = f"all {tested:,} pairs" if tested > 1 else "the pair"
            return f"Mean {second} decides {which} as mean {first} does."
        opposite = int((other["decision"] == "opposite").sum())
        more = f", {opposite:,} of them in the opposite direction" if opposite else ""
        pairs = f"{tested:,} pairs" if tested > 1 else "1 pair"
        return f"Mean {second} decides {len(other):,} of {pairs} otherwise than mean {first}{more}."

    def sentences(self, *, of_raw: bool = False) -> tuple[str, ...]:
        """How many pairs are decided alike, and one sentence for each that is not."""
        rows: list[Any] = self.disagreements().to_dict("records")
        one_sided = self.table["decision"].isin(["score only", "raw only"]).any()
        pairs = (self._sentence(row) for row in rows)
        return (self.overview(of_raw=of_raw), *pairs, *([_NO_PROOF] if one_sided else []))

    @property
    def title(self) -> str:
        return f"Decisions by {self.score} and by {self.raw}"

    @property
    def facts(self) -> tuple[str, ...]:
        return (
            f"score: {self.score}; raw: {self.raw}. Advantages are positive where left is better; p-values are "
            f"adjusted on each scale, and decisions at alpha = {self.alpha:.3g}.",
            f"Null hypothesis on {self.score}: {self.hypothesis}.",
            *([self.differs] if self.differs else []),
        )

    def _sentence(self, row: dict[str, Any]) -> str:
        on_raw = row["decision"] == "raw only"
        gap = row["raw_advantage"] if on_raw else row["advantage"]
        p, other_p = row["p_value"], row["raw_p_value"]
        p, other_p = (other_p, p) if on_raw else (p, other_p)
        first, second = (row["left"], row["right"]) if gap > 0 else (row["right"], row["left"])
        found, other = (self.raw, self.score) if on_raw else (self.score, self.raw)
        claim = f"{first} is better than {second} by mean {found}"
        if row["decision"] == "opposite":
            return f"{claim} ({p_text(p)}), and worse by mean {other} ({p_text(other_p)})."
        where = {"same": "ahead", "reversed": "behind", "tied": "level"}[row["order"]]
        return f"{claim} only ({p_text(p)}); by mean {other} it is {where}, without significance ({p_text(other_p)})."


_NO_PROOF = (
    "Where only one of the two tests finds a difference, the claim holds for its own mean. It does not show that the "
    "two disagree: the other test may lack power."
)


@one_blas_thread()
def scale_agreement(runs: Runs, method: str | None = None, *, alpha: float = 0.05) -> ScaleAgreement:
    """Compare algorithms by a normalised and by the raw score, and say where the decisions differ.

    Parameters
    ----------
    runs : Runs
        As they were measured, or as `Runs.normalize` returns them.
    method : {"minmax", "normalized_regret", "rank", "zscore", "log", "regret"}, optional
        The normalisation; by default that of the runs, or "rank" for runs as measured.
    alpha : float in (0, 1)
        Level of the decisions, on each scale for all pairs together.

    Returns
    -------
    ScaleAgreement

    Raises
    ------
    ArgumentError
        If `runs` is a plain table or an option is unknown.
    DataError
        If the scores cannot be normalised.

    Notes
    -----
    Normalised scores have a fixed effect of each of up to 100 benchmarks; of more, all scores have the model of the raw
    one, with random effects of benchmarks.

    On each scale the recommended model is fitted and all pairs are tested. Each decision is about the mean on its own
    scale. In simulated accuracies near 1, with equal mean scores and one erratic algorithm of three or six, a test of
    mean ranks finds a difference in 22 to 76 % of the tables, of min-max or z-scores in 18 to 59 %: mean ranks and
    mean normalised scores do differ there. With alike algorithms each finds one in 3 to 6 %.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = [(f"t{b}", tool, 0.1 * b + (tool == "B") * (0.1 if b % 5 else -3.0) + 0.001 * b % 0.01)
    ...          for b in range(40) for tool in "AB"]
    >>> columns = dict(zip(["task", "tool", "loss"], zip(*table)))
    >>> runs = lt.Runs(columns, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> lt.scale_agreement(runs).sentences()[1]
    'A is better than B by mean loss_rank (p < 0.001), and worse by mean loss (p = 0.012).'
    """
    require_runs(runs)
    if method is not None:
        check_choice(method, "method", METHODS)
    alpha = check_fraction(alpha, "alpha")
    raw = raw_runs(runs)
    if raw is None:
        raw, scaled = runs, runs.normalize(method or "rank", name=free_name(runs, method or "rank"))
    elif method is None or (runs.scale is not None and method == runs.scale.method):
        scaled = runs
    else:
        scaled = raw.normalize(method, name=free_name(raw, method))
    return decisions_compared(scaled, _decided(scaled, alpha, raw), _decided(raw, alpha), alpha)


def raw_runs(runs: Runs) -> Runs | None:
    """The runs with the score from which theirs was made; None for scores as they were measured."""
    scale = runs.scale
    if scale is None:
        return None
    raw = type(runs)(runs.frame, **{**runs.roles(), "score": scale.score, "direction": scale.direction})
    return with_curve(raw, runs.curve, None)


def decisions_compared(runs: Runs, of_score: Comparisons, of_raw: Comparisons, alpha: float) -> ScaleAgreement:
    """Set the pairs of normalised runs beside those of the raw score."""
    scale = runs.scale
    if scale is None:
        raise ArgumentError("runs must be normalised, but their score is as it was measured. Use runs.normalize(...).")
    raw = {(row["left"], row["right"]): row for row in of_raw.to_frame().to_dict("records")}
    raw |= {(right, left): {**row, "estimate": -row["estimate"]} for (left, right), row in raw.items()}
    one = of_score.to_frame()
    other = pd.DataFrame([raw[key] for key in zip(one["left"], one["right"], strict=True)])
    gap, raw_gap = better_by(one, runs.direction), better_by(other, scale.direction)
    p, raw_p = (frame["p_value"].to_numpy(dtype=float) for frame in (one, other))
    found, raw_found, both = below(p, alpha), below(raw_p, alpha), gap * raw_gap
    decision = np.select(
        [np.isnan(p + raw_p), found & raw_found & (both > 0), found & raw_found, found, raw_found],
        ["not tested", "same", "opposite", "score only", "raw only"],
        "neither",
    )
    table = one[["left", "right"]].assign(
        advantage=gap,
        p_value=p,
        raw_advantage=raw_gap,
        raw_p_value=raw_p,
        order=np.select([both == 0, both > 0], ["tied", "same"], "reversed").astype(object),
        decision=decision.astype(object),
    )
    return ScaleAgreement(
        table=table,
        score=runs.score,
        raw=scale.score,
        method=scale.method,
        hypothesis=hypothesis_on(scale),
        differs=what_differs(scale.method, target=scale.anchors is not None and bool(scale.anchors.target)),
        alpha=alpha,
    )


def better_by(pairs: pd.DataFrame, direction: str) -> FloatArray:
    """By how much left is better; rounding is a tie."""
    gap, se = (pairs[name].to_numpy(dtype=float) for name in ("estimate", "se"))
    tied = np.isfinite(se) & (np.abs(gap) <= 1e-7 * se)
    return np.where(tied, 0.0, -gap if direction == "minimize" else gap)


def _decided(runs: Runs, alpha: float, raw: Runs | None = None) -> Comparisons:
    """All pairs; of scores on many benchmarks by the model of the raw score, see `MOST_FIXED`."""
    model = recommend(runs)
    formula = model.formula
    if raw is not None and runs.study.several_benchmarks and runs.study.count(runs.benchmark) > MOST_FIXED:
        formula = f"{quote_name(model.runs.score)} ~{recommend(raw).formula.split('~', 1)[1]}"
    fit = fit_lmm(formula, model.runs)
    return emmeans(fit, runs.algorithm, level=1.0 - alpha).pairs()


def free_name(runs: Runs, method: str) -> str:
    """A name for the new score that the table does not have yet."""
    name = f"{runs.score}_{method}"
    while name in runs.columns:
        name += "_"
    return name
