"""Probability of outperforming of two samples of runs, with its interval and effect sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.bench.outperforming.intervals import (
    FEW,
    PAIRED,
    UNPAIRED,
    Counts,
    paired_interval,
    unpaired_interval,
)
from lmemtest.bench.outperforming.verdict import conclusion, in_words, meaning, signs_of
from lmemtest.bench.ranking.effect_size import effect_size
from lmemtest.bench.ranking.effect_sizes import check_samples
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, written
from lmemtest.core.validate import check_choice, resolve_rng
from lmemtest.core.words import counted, percent

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array


INTERVALS = {
    "score": "score interval (Tango; Wilson's without ties)",
    "exact": "Clopper-Pearson interval, ties half a win",
    "percentile": "percentile bootstrap interval",
    "bca": "BCa bootstrap interval",
    "logit": "interval on the logit scale with DeLong's variance",
}
UNPAIRED_SCORE = "score interval with DeLong's variance"


@result
class Outperforming(Result):
    """How often a run of A is better than one of B.

    Attributes
    ----------
    estimate : float
        Share of the pairs in which A is better, ties one half; of all pairs of runs where they are not paired.
    ci_low, ci_high : float
        Two-sided interval at level ``1 - alpha``.
    conclusion : str
        "not significant"; where ``ci_low > 0.5`` "significant but not meaningful" (``ci_high <= gamma``), "significant
        and may be meaningful", or "significant and meaningful" (``ci_low > gamma``). It is about A being better.
    n : (int, int)
        Runs of A and of B.
    ties : int
        Pairs of equal scores, to rounding.
    effects : pandas.DataFrame
        Effect sizes beside it, positive where A is better: ``kind``, ``estimate``, ``ci_low``, ``ci_high``,
        ``magnitude``; for scores of 0 and 1 the difference of the shares of ones, ``risk difference``, first.
    paired : bool
    gamma, alpha : float
    method : str
    direction : {"maximize", "minimize"}
    notes : tuple of str
    """

    parts: ClassVar[dict[str, str]] = {"table": "table", "effects": "effects"}
    formats = dict.fromkeys(["estimate", "ci_low", "ci_high"], ".3f")

    estimate: float
    ci_low: float
    ci_high: float
    conclusion: str
    n: tuple[int, int]
    ties: int
    effects: pd.DataFrame
    paired: bool
    gamma: float
    alpha: float
    method: str
    direction: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Of how many runs."""
        of = counted(self.n[0], "pair") if self.paired else f"{self.n[0]:,} and {self.n[1]:,} runs, not paired"
        return f"Probability that a run of A is better than one of B, {of}"

    def table(self) -> pd.DataFrame:
        """One row: estimate, ci_low, ci_high, ties, conclusion."""
        import pandas as pd

        row = {"estimate": self.estimate, "ci_low": self.ci_low, "ci_high": self.ci_high, "ties": self.ties}
        return pd.DataFrame([{**row, "conclusion": self.conclusion}])

    @property
    def facts(self) -> tuple[str, ...]:
        """What the interval is, and what was asked."""
        better = "higher" if self.direction == "maximize" else "lower"
        kind = INTERVALS[self.method] if self.paired or self.method != "score" else UNPAIRED_SCORE
        return (
            f"{percent(1.0 - self.alpha)} {kind}; {better} scores are better, ties count one half.",
            in_words(self.gamma),
        )

    def sentences(self) -> tuple[str, ...]:
        """The conclusion, with what it is and what it is not."""
        ends = f"{percent(1.0 - self.alpha)} interval {written(self.ci_low, '.2f')} to {written(self.ci_high, '.2f')}"
        first = f"A run of A is better than one of B with probability {written(self.estimate, '.2f')} ({ends})"
        return (f"{first}: {self.conclusion}.", *meaning(self.conclusion, self.ci_high, self.gamma))


def of_samples(
    a: Any,
    b: Any,
    paired: bool,
    gamma: float,
    alpha: float,
    *,
    direction: str,
    method: str,
    n_draws: int,
    rng: int | np.random.Generator | None,
) -> Outperforming:
    """`probability_of_outperforming` of two samples."""
    method = check_choice(method, "method", ("auto", *(PAIRED if paired else UNPAIRED)))
    generator = resolve_rng(rng)
    x, y = check_samples(a, b, ("a", "b"), 1, "cliff_delta", paired)
    sign = -1.0 if direction == "minimize" else 1.0
    signs = signs_of(sign * x, sign * y, paired)
    method = _chosen(method, paired, x.size)
    if paired:
        counts = Counts.of_signs(signs)
        low, high = paired_interval(counts, method, 1.0 - alpha, n_draws, generator)
    else:
        low, high = unpaired_interval(signs, method, 1.0 - alpha, n_draws, generator)
    binary = bool(np.isin(np.concatenate([x, y]), (0.0, 1.0)).all())
    estimate = float(0.5 + 0.5 * signs.mean())
    return Outperforming(
        estimate=estimate,
        ci_low=low,
        ci_high=high,
        conclusion=conclusion(low, high, gamma),
        n=(x.size, y.size),
        ties=int((signs == 0).sum()),
        effects=_effects(a, b, sign, paired, 1.0 - alpha, (estimate, low, high) if binary else None),
        paired=paired,
        gamma=gamma,
        alpha=alpha,
        method=method,
        direction=direction,
        notes=_notes(signs, paired, binary, alpha, method),
    )


def _chosen(method: str, paired: bool, n: int) -> str:
    if method != "auto":
        return method
    return "exact" if paired and n < FEW else "score"


def _effects(
    a: Any, b: Any, sign: float, paired: bool, level: float, of_ones: tuple[float, float, float] | None
) -> pd.DataFrame:
    """Effect sizes with A - B in the direction of better; shares of ones as they are."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    if of_ones is not None:
        middle, *ends = (sign * (2.0 * p - 1.0) for p in of_ones)
        low, high = sorted(ends)
        rows.append({"kind": "risk difference", "estimate": middle, "ci_low": low, "ci_high": high, "magnitude": ""})
    for kind in ("cohen_dz", "rank_biserial") if paired else ("hedges_g", "cliff_delta"):
        # the one that is better where it is higher comes first
        left, right = (a, b) if sign > 0.0 else (b, a)
        e = effect_size(left, right, kind, paired=paired, level=level)
        rows.append({name: getattr(e, name) for name in ("kind", "estimate", "ci_low", "ci_high", "magnitude")})
    return pd.DataFrame(rows)


def _notes(signs: Array, paired: bool, binary: bool, alpha: float, method: str) -> tuple[str, ...]:
    notes, n = [], len(signs)
    if paired and n < FEW:
        notes.append(
            f"{n} pairs of {n} won would have an exact two-sided p-value of {written(2.0 ** (1 - n), '.3g')}: with "
            f"fewer than {FEW} pairs a significant advantage cannot be shown at alpha = {alpha:g} "
            f"{'by any result' if not below(2.0 ** (1 - n), alpha) else 'unless all are won'}."
        )
    tied = float((signs == 0).mean())
    if tied == 1.0:
        notes.append("All pairs are tied: the scores say nothing about which algorithm is better.")
    elif binary:
        notes.append(
            f"Scores are 0 and 1, and {percent(tied)} of the pairs are tied and count half: the probability is "
            "(1 + difference of the shares) / 2, and gamma = 0.75 means a difference of 50 points. Read the risk "
            "difference in to_frame('effects')."
        )
    if not paired and method != "percentile" and abs(signs.mean()) == 1.0:
        worth = 3.0 * signs.size / (sum(signs.shape) + 1.0)
        notes.append(
            "All runs of one are better than all of the other, so that DeLong's variance is zero: the interval is that "
            f"of {written(worth, '.3g')} pairs, which is what these runs would be worth if they did not differ."
        )
    if method in ("percentile", "bca") and np.ptp(signs) == 0.0:
        notes.append(
            "All pairs are alike, and so are all draws: the bootstrap interval has no length, whatever the number of "
            "pairs. method='score' has one."
        )
    return tuple(notes)
