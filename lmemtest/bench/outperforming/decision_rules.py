"""How often rules of decision find that A is better than B: a single comparison, averages, tests.

On one benchmark the i-th runs of A and B differ by

    d_i = delta + b + e_i,    Var(b) = 2 interaction_sd^2,    Var(e_i) = 2 residual_sd^2,

where b is what all runs of a study share: their hyperparameters were tuned once. The ideal estimator tunes for every
run, so that its d_i are independent with the sum of both variances. Both have the same delta and the same
P(A > B) = Phi(delta / sqrt(2 (interaction_sd^2 + residual_sd^2))).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import special

from lmemtest.bench.outperforming.intervals import Counts, ends_of
from lmemtest.bench.outperforming.verdict import check_gamma
from lmemtest.bench.power.components import VarianceComponents
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, written
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, resolve_rng
from lmemtest.core.words import percent
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import upper_tail

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

RULES = ("single", "average", "t_test", "outperforming", "oracle")
ESTIMATORS = ("ideal", "biased")
THRESHOLD = 1.9952  # standard deviations of a run: of the improvements that the paper found published
PROBABILITIES = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
FALSE_NEGATIVES = ("false_negatives", "false_negatives_beyond", "false_negatives_overall")
_AT_ONCE = 2_000_000  # differences in memory


@result
class DecisionRules(Result):
    """How often rules find A better, by the probability that a run of A is better.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per estimator, rule and probability: ``estimator``, ``rule``, ``probability``, ``rate`` of detections,
        ``se`` of the simulation.
    errors : pandas.DataFrame
        One row per estimator and rule: ``false_positives``, the rate at P = 0.5; ``false_negatives``, one less the rate
        at P = gamma; ``false_negatives_beyond``, the mean of that over the probabilities from gamma on;
        ``false_negatives_overall``, over all P from 0.5 to 1, each alike (trapezoidal rule).
    n_runs : int
        Pairs of runs in a study.
    gamma, alpha : float
    threshold : float
        Of "single" and "average", in standard deviations of a run.
    shared : float
        Share of the variance of a run that all runs of the biased estimator share.
    method : str
        Of the interval.
    n_draws : int
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "decision_rules_plot"
    parts: ClassVar[dict[str, str]] = {"errors": "errors", "table": "table"}
    formats = dict.fromkeys(["rate", "se", "false_positives", *FALSE_NEGATIVES], ".3f")

    table: pd.DataFrame
    errors: pd.DataFrame
    n_runs: int
    gamma: float
    alpha: float
    threshold: float
    shared: float
    method: str
    n_draws: int
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Of how many runs."""
        return f"Error rates of decisions from {self.n_runs:,} pairs of runs"

    @property
    def facts(self) -> tuple[str, ...]:
        """What was simulated, and what the rules are."""
        two_sided = percent(1.0 - 2.0 * self.alpha)
        return (
            f"{self.n_draws:,} studies per cell; runs of the biased estimator share {percent(self.shared)} of the "
            "variance of a run.",
            f"single, average: a difference above {self.threshold:g} standard deviations of a run; t_test: paired, "
            f"one-sided at {percent(self.alpha)}; outperforming: {two_sided} {self.method} interval above 0.5 and "
            f"beyond gamma = {self.gamma:g}; oracle: z-test with the true variance.",
        )

    def sentences(self) -> tuple[str, ...]:
        """Both errors of each rule."""
        return tuple(
            f"{row['rule']}, {row['estimator']} estimator: {percent(row['false_positives'])} false positives at P = "
            f"0.5 and {percent(row['false_negatives'])} false negatives at P = {written(self.gamma, 'g')}."
            for row in self.errors.to_dict("records")
        )


def decision_rules(
    components: VarianceComponents | None = None,
    *,
    n_runs: int = 50,
    gamma: float = 0.75,
    alpha: float = 0.05,
    threshold: float = THRESHOLD,
    probabilities: Sequence[float] = PROBABILITIES,
    method: str = "percentile",
    n_draws: int = 10_000,
    rng: int | np.random.Generator | None = None,
) -> DecisionRules:
    """Error rates of rules that decide whether A is better than B, with ideal and biased estimators.

    Parameters
    ----------
    components : VarianceComponents, optional
        `interaction_sd` of what all runs of an algorithm share in one study and another study would not repeat (its
        hyperparameters, also as the source "tuning"), `run_sd` of single runs; what A and B share cancels. By default
        2 % of the variance is shared.
    n_runs : int, >= 2
        Pairs of runs in a study; the paper has 50.
    gamma : float in (0.5, 1)
    alpha : float in (0, 0.5)
        One-sided: of the t-test, and of the lower end of the interval, so that rules are comparable.
    threshold : float > 0
        Of the difference that single comparisons and averages ask for, in standard deviations of a run.
    probabilities : sequence of float in (0, 1)
        True probabilities that a run of A is better; 0.5 and `gamma` are added.
    method : {"percentile", "score", "exact"}
        Of the interval; the paper's by default.
    n_draws : int
        Studies per probability and estimator.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    DecisionRules

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, section 4.2

    Examples
    --------
    >>> found = decision_rules(n_draws=2000, rng=1)
    >>> found.errors.set_index(["estimator", "rule"]).loc[("ideal", "average")].tolist()[:2]
    [0.0, 1.0]
    """
    import pandas as pd

    if components is None:
        components = VarianceComponents(interaction_sd=math.sqrt(0.02), residual_sd=math.sqrt(0.98))
    if not isinstance(components, VarianceComponents):
        raise ArgumentError(f"components must be VarianceComponents, got {components!r:.60}.")
    n_runs, n_draws = check_positive_int(n_runs, "n_runs", minimum=2), check_positive_int(n_draws, "n_draws")
    gamma, alpha = check_gamma(gamma), check_fraction(alpha, "alpha")
    check_choice(method, "method", ("percentile", "score", "exact"))
    if not below(alpha, 0.5):
        raise ArgumentError(f"alpha must be below 0.5, since it is of one side, got {alpha:g}.")
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0.0 < threshold < math.inf:
        raise ArgumentError(f"threshold must be a positive number of standard deviations, got {threshold!r}.")
    if isinstance(probabilities, (int, float, str)) or not isinstance(probabilities, Iterable):
        raise ArgumentError(f"probabilities must be a sequence of numbers between 0 and 1, got {probabilities!r:.60}.")
    truths = sorted({0.5, gamma, *(check_fraction(p, "probabilities") for p in probabilities)})
    generator = resolve_rng(rng)
    total = components.advantage_sd**2 + components.run_sd**2
    shared = (components.advantage_sd**2 + components.sources.get("tuning", 0.0) ** 2) / total
    wins = np.arange(n_runs + 1)
    low, high = ends_of(Counts.of(wins, np.zeros(n_runs + 1), n_runs - wins), method, 1.0 - 2.0 * alpha)
    meaningful = below(0.5, low) & below(gamma, high)
    rows = []
    for estimator in ESTIMATORS:
        for truth in truths:
            hits = np.zeros(len(RULES))
            for count in _portions(n_draws, n_runs):
                d = _differences(truth, shared if estimator == "biased" else 0.0, (count, n_runs), generator)
                hits += _decisions(d, alpha, threshold, meaningful).sum(axis=1)
            for rule, rate in zip(RULES, hits / n_draws, strict=True):
                se = math.sqrt(rate * (1.0 - rate) / n_draws)
                rows.append((estimator, rule, truth, float(rate), se))
    table = pd.DataFrame(rows, columns=["estimator", "rule", "probability", "rate", "se"])
    return DecisionRules(
        table=table,
        errors=_errors(table, gamma),
        n_runs=n_runs,
        gamma=gamma,
        alpha=alpha,
        threshold=float(threshold),
        shared=shared,
        method=method,
        n_draws=n_draws,
    )


def _portions(n_draws: int, n_runs: int) -> list[int]:
    most = max(1, _AT_ONCE // n_runs)
    return [min(most, n_draws - done) for done in range(0, n_draws, most)]


def _differences(truth: float, shared: float, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Differences of paired runs of variance 1 each, ``(studies, runs)``."""
    delta = math.sqrt(2.0) * float(special.ndtri(truth))
    own = rng.normal(scale=math.sqrt(2.0 * (1.0 - shared)), size=shape)
    return delta + rng.normal(scale=math.sqrt(2.0 * shared), size=(shape[0], 1)) + own


def _decisions(d: Array, alpha: float, threshold: float, meaningful: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each rule finds A better in each study, in the order of `RULES`."""
    n, mean = d.shape[1], d.mean(axis=1)
    t_ratio = mean / (d.std(axis=1, ddof=1) / math.sqrt(n))
    return np.stack(
        [
            d[:, 0] > threshold,
            mean > threshold,
            below(upper_tail(t_ratio, n - 1.0), alpha),
            meaningful[(d > 0.0).sum(axis=1)],
            mean > special.ndtri(1.0 - alpha) * math.sqrt(2.0 / n),
        ]
    )


def _errors(table: pd.DataFrame, gamma: float) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for (estimator, rule), part in table.groupby(["estimator", "rule"], sort=False):
        p, rate = part["probability"].to_numpy(), part["rate"].to_numpy()
        beyond, above = ~below(p, gamma), ~below(p, 0.5)
        overall = 2.0 * float(np.trapezoid([*(1.0 - rate[above]), 0.0], [*p[above], 1.0]))  # a sure advantage is found
        missed = (1.0 - rate[p == gamma][0], 1.0 - rate[beyond].mean(), overall)
        rows.append((estimator, rule, rate[p == 0.5][0], *missed))
    columns = ["estimator", "rule", "false_positives", *FALSE_NEGATIVES]
    return pd.DataFrame(rows, columns=columns)
