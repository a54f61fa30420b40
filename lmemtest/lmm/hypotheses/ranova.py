"""Every random term of a model on trial: likelihood-ratio tests of the model without it, or with a simpler one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from lmemtest.core.replicates import Executor
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice
from lmemtest.errors import ArgumentError
from lmemtest.lmm.formula import INTERCEPT
from lmemtest.lmm.formula.bars import Bar, ParsedFormula
from lmemtest.lmm.hypotheses.glrt import REFERENCES, glrt
from lmemtest.lmm.model.fitting import with_terms
from lmemtest.lmm.model.given import check_fit, check_linear

if TYPE_CHECKING:
    import numpy as np


@one_blas_thread()
def ranova(
    fit: Any,
    reference: str = "auto",
    *,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Answer:
    """Test every random term of a model by leaving it out, and slopes and levels by simplifying their term.

    Parameters
    ----------
    fit : LmmFit
        A fitted model with random terms.
    reference : {"auto", "chi2", "mixture", "exact", "bootstrap"}
        Null distribution, as in `glrt`, which makes each test. "chi2" gives the p-values of R's `ranova`, about twice
        too large for one variance.
    n_draws, rng, n_jobs, executor, progress
        As in `glrt`, for "bootstrap" and "exact".

    Returns
    -------
    Answer
        One row per test: term, simplified_to (what took its place; None where it was left out), llf (of the changed
        model), statistic, df, p_value, reference. Values: ``tests`` (the changed model against the whole one, as
        `glrt` answers), ``terms`` and ``simplified`` (the first columns), ``formula`` and ``n_obs`` of the whole model.

    Raises
    ------
    ArgumentError
        If the model has no random term, or the reference does not apply to every change.

    Notes
    -----
    Each term is left out, and from a term of several effects each is taken that is in no interaction with another:
    ``(x | g)`` becomes ``(1 | g)``. The fixed part stays, so REML fits are compared as they are.

    A small p-value says that the variation is there. A large one is no reason to leave out what the design of the study
    demands: with few groups the test has little power.

    References
    ----------
    Kuznetsova, Brockhoff & Christensen (2017), doi:10.18637/jss.v082.i13; Self & Liang (1987),
    doi:10.1080/01621459.1987.10478472

    Examples
    --------
    >>> import pandas as pd, lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("AB") * 8, "task": list("wwwwxxxxyyyyzzzz"),
    ...                      "score": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 7]})
    >>> found = ranova(lt.fit_lmm("score ~ algorithm + (1|task) + (1|task:algorithm)", runs))
    >>> found.to_frame()[["term", "df", "reference"]]
                       term  df reference
    0            (1 | task)   1   mixture
    1  (1 | task:algorithm)   1   mixture
    >>> round(found.tests[0].statistic, 3), round(found.tests[0].p_value, 4)
    (9.035, 0.0013)
    """
    check_fit(fit, "fit")
    check_linear(fit, "ranova()", "Compare two fits by lmm.glrt().")
    check_choice(reference, "reference", REFERENCES)
    changes = list(_changes(fit.design.parsed))
    if not changes:
        raise ArgumentError(
            f"ranova tests random terms, and '{fit.formula}' has none. Add one, such as (1 | benchmark)."
        )
    tests = [
        glrt(
            with_terms(fit, smaller),
            fit,
            reference,
            n_draws=n_draws,
            rng=rng,
            n_jobs=n_jobs,
            executor=executor,
            progress=progress,
        )
        for _, _, smaller in changes
    ]
    simplified = tuple(None if left is None else str(left) for _, left, _ in changes)
    columns = ("llf_null", "statistic", "df", "p_value", "reference")
    table = pd.DataFrame([[test.values[name] for name in columns] for test in tests], columns=columns)
    table.insert(0, "term", [str(bar) for bar, _, _ in changes])
    table.insert(1, "simplified_to", pd.Series(list(simplified), dtype=object))
    return Answer(
        question="ranova",
        title="Likelihood-ratio tests of the random terms",
        tables={"table": table.rename(columns={"llf_null": "llf"})},
        values={
            "tests": tuple(tests),
            "terms": tuple(table["term"]),
            "simplified": simplified,
            "formula": fit.label,
            "n_obs": int(fit.nobs),
        },
        facts=(
            f"{fit.label}: {tests[0].method} log-likelihood {written(tests[0].llf_alternative, '.4f')}, n = {fit.nobs} "
            "rows. Each row leaves one term out or simplifies it; p-values are not adjusted for their number.",
        ),
        notes=_notes([str(bar) + (f" to {left}" if left else "") for bar, left, _ in changes], tests),
        formats={"llf": ".4f"},
    )


def _changes(parsed: ParsedFormula) -> Iterator[tuple[Bar, Bar | None, ParsedFormula]]:
    """Each term, what is left of it, and the formula with this change."""
    for i, bar in enumerate(parsed.bars):
        for left in (None, *_simpler(bar)):
            bars = (*parsed.bars[:i], *([] if left is None else [left]), *parsed.bars[i + 1 :])
            yield bar, left, parsed.with_bars(bars)


def _simpler(bar: Bar) -> Iterator[Bar]:
    """The term without one of its effects, if that is in no other effect and leaves something."""
    for effect in bar.effects:
        rest = tuple(other for other in bar.effects if other != effect)
        if bar.diagonal or effect == INTERCEPT or not rest or any(effect.key < other.key for other in rest):
            continue
        labels = ["1" if INTERCEPT in rest else "0", *(other.label for other in rest if other != INTERCEPT)]
        yield dataclasses.replace(bar, left=" + ".join(labels), effects=rest)


def _notes(changes: list[str], tests: list[Answer]) -> tuple[str, ...]:
    """Notes of the tests: once if they are those of all, otherwise with the change that they belong to."""
    shared = [note for note in tests[0].notes if all(note in test.notes for test in tests)]
    alone = [
        f"{change}: {note[0].lower()}{note[1:]}"
        for change, test in zip(changes, tests, strict=True)
        for note in test.notes
        if note not in shared
    ]
    return (*shared, *alone)
