"""`rank`: algorithms in order and which of them differ, by a mixed model, classical tests or posteriors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.blocks import Blocks, blocks_of
from lmemtest.bench.data.per_run import CURVE_CHOICES, reduced
from lmemtest.bench.data.runs import Runs, as_runs
from lmemtest.bench.outperforming.effect_size import KINDS, effect_sizes, magnitudes, standardised
from lmemtest.bench.ranking.compare import classical_tests, compared
from lmemtest.bench.ranking.methods import (
    CONTROL_ADJUSTMENTS,
    PAIR_ADJUSTMENTS,
    TEST_NAMES,
    TESTS,
    Assessment,
    RankOptions,
    assessment_of,
    mean_ranks,
    outcomes,
)
from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.caller import named
from lmemtest.core.hints import guided
from lmemtest.core.options import ROPE_UNITS, VCOV
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, check_rope, resolve_rng
from lmemtest.core.verdicts import pair_words
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.distributions.student import t_quantile

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.robustness.variants import Variants
    from lmemtest.core.arrays import Array


# What goes with the tests of each kind: a standardised mean with means, a share of signed ranks with ranks.
EFFECTS = dict.fromkeys(("moderated", "t", "tukey", "lmem", "hierarchical"), "cohen_dz")


@guided
@one_blas_thread()
def rank(
    data: Any,
    method: str | None = None,
    *,
    direction: str | None = None,
    alpha: float = 0.05,
    test: str = "auto",
    adjust: str | None = None,
    vcov: str | None = None,
    control: Any = None,
    effect_size: str | None = None,
    curves: str | None = None,
    rope: float = 0.0,
    rope_unit: str = "score",
    n_draws: int = 50_000,
    rng: int | np.random.Generator | None = None,
    **roles: Any,
) -> Ranking | Variants:
    """Rank algorithms and decide which of them differ.

    Parameters
    ----------
    data : Runs or dataframe
        Runs, with several seeds and missing cells as they are; a dataframe with `roles`; or a wide frame with a column
        per algorithm and a row per benchmark, which needs `direction` alone.
    method : {"lmem", "frequentist", "bayesian", "all"}, optional
        "lmem": marginal means of the recommended mixed model. The other two give every algorithm one score per
        benchmark, the mean of its runs there (with one benchmark: per seed). "all": several tests side by side.
        Default: that of `test`, where one is named, else "lmem". The name of a test will do as well.
    direction : {"minimize", "maximize"}
        Which end of the score is better; of a dataframe only.
    alpha : float in (0, 1)
        Chance of any false difference (Bayesian: of each decision to be wrong, by its posterior).
    test : str
        "frequentist": "moderated", "t", "tukey" (repeated-measures ANOVA), "nemenyi", "conover", "wilcoxon", or "auto":
        paired t-test or signed-rank test for two algorithms, moderated t-tests or Nemenyi for more, by Shapiro-Wilk
        tests of the residuals; signed-rank tests where cells are missing. "bayesian": "signed_rank" ("auto") or
        "hierarchical".
    adjust : str, optional
        Adjustment of the p-values of the pairs: "tukey", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none"; with
        a control "dunnett" in place of the first two. Default: what goes with the test.
    vcov : {"moderated", "model"}, optional
        Of "lmem": standard errors of the differences, see `pairs`.
    control : str, optional
        Compare all others with this algorithm only, chosen before the scores were seen.
    effect_size : str, optional
        Kind of the effect sizes over blocks, see `outperforming`; default: "cohen_dz" with means, "rank_biserial" with
        ranks. "standardised", of "lmem" only: the difference of the marginal means over the residual standard deviation
        of the model.
    curves : {"mean", "last", "best", "area", "model"}, optional
        What the scores of a run over its budgets count, see `recommend`; "model" for "lmem" only.
    rope, rope_unit : float >= 0, {"score", "effect", "mad"}
        Bayesian: differences that do not matter, in units of the score; see `bayesian_pairs` on the other units. With 0
        nothing is practically equivalent.
    n_draws, rng : int, int or Generator
        Of the posterior, and of resampled intervals.
    **roles
        score, algorithm, benchmark, ...: what the columns of a dataframe mean, as in `Runs`; of a wide frame
        those beside the algorithms, as in `Runs.from_wide`.

    Returns
    -------
    Ranking, or Variants with "all"
        ``to_frame()``, ``to_frame("pairs")``, ``sentences()``, ``plot()``, ``paragraph()``, ``leaderboard()``,
        ``stability()``; ``decisions`` has the decisions. With "all" ``to_frame()`` says of each pair what every test
        says, and ``alike`` whether all do; ``to_frame("places")`` has the places of the algorithms by every test,
        ``rankings`` each test's ranking by its name, ``rows_as_blocks`` what ranking every row would find, measured.

    Raises
    ------
    ArgumentError
        If an option is unknown or does not go with the others.
    DesignError
        If there are no blocks on which algorithms can be compared, or too few.
    DataError
        If scores are missing or infinite.

    Notes
    -----
    Runs that share a benchmark are not independent, so no method counts them as blocks of their own. Ranks and means
    ask different questions: who wins more often, and who is better on average. What a test assumes was broken on
    purpose in simulations; their sizes are on the page of validation.

    References
    ----------
    Demšar (2006), Journal of Machine Learning Research 7, 1-30; Benavoli, Corani, Demšar & Zaffalon (2017), Journal of
    Machine Learning Research 18(77), 1-36

    Examples
    --------
    >>> wide = {"A": [0.9, 0.8, 0.7, 0.9, 0.6], "B": [0.8, 0.7, 0.7, 0.8, 0.5], "C": [0.5, 0.6, 0.4, 0.6, 0.3]}
    >>> found = rank(wide, "frequentist", direction="maximize")
    >>> found.table[["algorithm", "mean_rank", "letters"]].to_dict("list")
    {'algorithm': ['A', 'B', 'C'], 'mean_rank': [1.1, 1.9, 3.0], 'letters': ['a', 'b', 'c']}
    >>> rows = {"tool": list("ABC") * 4, "task": list("uuuvvvwwwxxx"), "loss": [1, 2, 4, 2, 3, 5, 1, 3, 4, 1, 2, 5]}
    >>> rank(rows, "nemenyi", score="loss", direction="minimize", algorithm="tool", benchmark="task").levels
    ('A', 'B', 'C')
    """
    method, test = _method_and_test(method, test)
    asked = method if test == "auto" else test
    runs = as_runs(data, {"direction": direction, **roles}, "rank", "" if asked == "lmem" else f"{asked!r}, ")
    runs.study.require_algorithms()
    if curves is not None:
        check_choice(curves, "curves", CURVE_CHOICES)
    if curves == "model" and method != "lmem":
        raise ArgumentError(f"curves='model' keeps curves in the mixed model, and method={method!r} has none.")
    one_each = reduced(runs, None if curves == "model" else curves)
    blocks = blocks_of(one_each)
    runs = runs if curves == "model" else one_each
    if vcov is not None and method != "lmem":
        raise ArgumentError(f"vcov={vcov!r} is for method='lmem', and method={method!r} has its own. Leave it out.")
    checked = RankOptions(
        alpha=check_fraction(alpha, "alpha"),
        test=check_choice(test, "test", TESTS.get(method, ("auto",))),
        adjust=_adjust(adjust, method, control),
        vcov=vcov if vcov is None else check_choice(vcov, "vcov", VCOV),
        control=_control(control, blocks),
        rope=check_rope(rope),
        rope_unit=check_choice(rope_unit, "rope_unit", ROPE_UNITS),
        n_draws=check_positive_int(n_draws, "n_draws", 100),
        rng=resolve_rng(rng),
    )
    if effect_size is not None:
        check_choice(effect_size, "effect_size", (*KINDS, "standardised") if method == "lmem" else KINDS)
    if method != "all":
        return ranking_of(assessment_of(method, runs, blocks, checked), runs, blocks, method, checked, effect_size)
    rankings, without = {}, []
    for one, tests in (("lmem", ("auto",)), ("frequentist", classical_tests(blocks)), ("bayesian", ("signed_rank",))):
        for name in tests:
            options = replace(checked, test=name)
            try:
                assessment = assessment_of(one, runs, blocks, options)
            except DesignError as error:
                without.append((one if name == "auto" else name, error))
                continue
            rankings[assessment.test] = ranking_of(assessment, runs, blocks, one, options, effect_size)
    if not rankings:
        raise without[0][1]
    notes = tuple(f"Without {TEST_NAMES[name]}: {error}" for name, error in without)
    return compared(rankings, resolve_rng(checked.rng), notes)


def _method_and_test(method: Any, test: Any) -> tuple[str, Any]:
    """The method that a test belongs to: people name the one or the other."""
    of_test = {name: kind for kind, tests in TESTS.items() for name in tests if name != "auto"}
    before = {"friedman": "nemenyi", "anova": "tukey"}  # the tests of all algorithms that come before those of pairs
    if isinstance(method, str) and isinstance(test, str) and test == "auto":
        name = before.get(method.lower(), method.lower())
        method, test = (of_test[name], name) if name in of_test else (method, test)
        check_choice(method, "method", (*TESTS, "all", *of_test))
    test = before.get(test, test) if isinstance(test, str) else test
    method_of_test = of_test.get(test, "lmem") if isinstance(test, str) else "lmem"
    if method is None:
        check_choice(test, "test", ("auto", *of_test))
    method = check_choice(method_of_test if method is None else method, "method", (*TESTS, "all"))
    if method in TESTS and method_of_test != "lmem" and method_of_test != method:
        raise ArgumentError(
            f"test={test!r} belongs to method={method_of_test!r}; the tests of {method!r} are "
            f"{', '.join(TESTS[method])}. Name one of them, or leave out method."
        )
    return method, test


def _adjust(adjust: str | None, method: str, control: Any) -> str | None:
    if adjust is None:
        return None
    if method == "bayesian":
        raise ArgumentError("adjust is for p-values, and method='bayesian' has posterior probabilities. Leave it out.")
    allowed = PAIR_ADJUSTMENTS if control is None else CONTROL_ADJUSTMENTS
    if method == "lmem" and control is None:
        allowed = (*allowed, "stepdown", "singlestep")
    return check_choice(adjust, "adjust", allowed)


def _control(control: Any, blocks: Blocks) -> str | None:
    if control is None:
        return None
    if str(control) not in blocks.algorithms:
        raise ArgumentError(
            f"{named('control')} must be one of the algorithms ({listed(blocks.algorithms)}), got {control!r}."
            f"{suggest(str(control), blocks.algorithms)}"
        )
    return str(control)


def ranking_of(
    assessment: Assessment, runs: Runs, blocks: Blocks, method: str, options: RankOptions, effect_size: str | None
) -> Ranking:
    """The record of an assessment: all in the order of the ranking, pairs with effect sizes and outcomes."""
    order = assessment.decisions.levels
    ordered = blocks.of(order)
    table = assessment.centre.set_index("algorithm").loc[list(order)].reset_index()
    if "mean_rank" not in table:
        table["mean_rank"] = mean_ranks(ordered)
    if options.control is None:
        table = table.assign(**assessment.decisions.columns(order))
    kind = effect_size or EFFECTS.get(assessment.test, "rank_biserial")
    notes = (*runs.notes, *assessment.notes)
    if method == "lmem" and blocks.unit == "seed":
        notes = (*notes, "One benchmark only: what follows says nothing about others.")
    if runs.curve is not None:
        notes = (*notes, *filter(None, (runs.curve.sentence, runs.curve.early)))
    return Ranking(
        table=table,
        pairs=_pairs(_oriented(assessment.tests, order), ordered, assessment, kind, options),
        decisions=replace(
            assessment.decisions,
            test=TEST_NAMES[assessment.test],
            omnibus_p=None if assessment.omnibus is None else assessment.omnibus.p_value,
        ),
        blocks=ordered,
        runs=runs,
        method=method,
        test=assessment.test,
        omnibus=assessment.omnibus,
        effect=kind,
        control=options.control,
        alpha=options.alpha,
        score=runs.score,
        direction=runs.direction,
        formula=assessment.formula,
        assumptions=assessment.assumptions,
        options=options,
        notes=notes,
    )


def _oriented(tests: pd.DataFrame, order: tuple[str, ...]) -> pd.DataFrame:
    """The tests with the algorithm that ranks higher on the left, in the order of the ranking."""
    import pandas as pd

    place = {name: i for i, name in enumerate(order)}
    left, right = (np.array([place[name] for name in tests[side].tolist()]) for side in ("left", "right"))
    turned = left > right
    out = {name: tests[name].to_numpy() for name in tests}
    for a, b in (("left", "right"), ("p_left", "p_right"), ("p_new_left", "p_new_right")):
        if a in out:
            out[a], out[b] = np.where(turned, out[b], out[a]), np.where(turned, out[a], out[b])
    if "p_mean_left" in out:
        out["p_mean_left"] = np.where(turned, 1.0 - out["p_mean_left"], out["p_mean_left"])
    for a, b in (("ci_low", "ci_high"), ("advantage_low", "advantage_high")):
        if a in out:
            out[a], out[b] = np.where(turned, -out[b], out[a]), np.where(turned, -out[a], out[b])
    for name in ("estimate", "statistic", "advantage"):
        if name in out:
            out[name] = np.where(turned, -out[name], out[name])
    first = np.lexsort((np.maximum(left, right), np.minimum(left, right)))
    return pd.DataFrame({name: values[first] for name, values in out.items()})


def _pairs(
    tests: pd.DataFrame, blocks: Blocks, assessment: Assessment, kind: str, options: RankOptions
) -> pd.DataFrame:
    import pandas as pd

    place = {name: i for i, name in enumerate(blocks.algorithms)}
    i, j = (np.array([place[name] for name in tests[side].tolist()]) for side in ("left", "right"))
    if kind == "standardised":
        sign = -1.0 if blocks.direction == "minimize" else 1.0  # positive where the left is better
        difference = sign * tests["estimate"].to_numpy(dtype=float)
        half = t_quantile(options.alpha / 2.0, tests["df"].to_numpy(dtype=float)) * tests["se"].to_numpy(dtype=float)
        ends = difference - half, difference + half
        size, low, high = standardised(difference, *ends, *assessment.residual_sd, alpha=options.alpha)
    else:
        size, low, high = _effects(blocks.gains, i, j, kind, options)
    wins, ties = outcomes(blocks)
    met = wins[i, j] + ties[i, j] + wins[j, i]
    better = np.divide(wins[i, j] + ties[i, j] / 2.0, met, out=np.full(len(i), np.nan), where=met > 0)
    # the p-values of posteriors were made for the matrix of decisions
    table = tests.drop(columns=["verdict", "p_value"] if "p_equal" in tests else [])
    more = {
        "effect_size": size,
        "effect_low": low,
        "effect_high": high,
        "magnitude": magnitudes(size, kind),
        "p_better": better,
        "wins": wins[i, j].astype(int),
        "ties": ties[i, j].astype(int),
        "losses": wins[j, i].astype(int),
        "decision": pair_words(
            assessment.decisions.pairs(tests["left"], tests["right"]),
            tests["left"],
            tests["right"],
            **({"neither": "undecided"} if "p_equal" in tests else {}),
        ),
    }
    return table.join(pd.DataFrame(more))


def _effects(gains: Array, i: Array, j: Array, kind: str, options: RankOptions) -> tuple[Array, Array, Array]:
    """Effect sizes of the pairs over the blocks that both have, positive where the left is better."""
    out = np.full((3, len(i)), np.nan)
    both = np.isfinite(gains[:, i]) & np.isfinite(gains[:, j])  # blocks x pairs
    _, first, which = np.unique(np.packbits(both, axis=0), axis=1, return_index=True, return_inverse=True)
    for code, one in enumerate(first):
        here, rows = np.flatnonzero(np.ravel(which) == code), both[:, one]
        if rows.sum() > 1:
            effects = effect_sizes(
                gains[rows][:, i[here]].T,
                gains[rows][:, j[here]].T,
                kind,
                paired=True,
                alpha=options.alpha,
                rng=options.rng,
            )
            out[:, here] = effects
    return out[0], out[1], out[2]
