"""Two models on one task: the exact test of the items on which one alone is right (McNemar's)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.evaluation.answers import read_answers
from lmemtest.core.caller import named
from lmemtest.core.hints import guided
from lmemtest.core.proportions import clopper_pearson
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_fraction
from lmemtest.core.words import counted, format_number, joined, p_text, percent
from lmemtest.errors import DataError, DesignError


@guided
@one_blas_thread()
def mcnemar(
    table: Any,
    *,
    model: str | Sequence[str] | None = None,
    item: str | None = None,
    score: str | None = None,
    task: str | None = None,
    drop_duplicates: str | None = None,
    alpha: float = 0.05,
) -> Answer:
    """Test exactly whether two models are right equally often on items like those of one task.

    Parameters
    ----------
    table : dataframe or mapping
        One row per answer, scored 1 (right) or 0; or one row per item with a column of scores for each model.
    model, item, score, task, drop_duplicates
        As in `evaluate`; `task` has one level, and can be left out.
    alpha : float in (0, 1)
        Of the decision; the interval is at 1 - alpha.

    Returns
    -------
    Answer
        ``to_frame()`` has one row: ``left``, ``right``, ``n_items`` (answered by both), ``both``, ``only_left``,
        ``only_right``, ``neither`` (items on which these are right), ``odds_ratio`` (`only_left` to `only_right`; inf
        if the latter is 0), ``ci_low``, ``ci_high``, ``p_value``, ``differ``.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule, or names a column that does not exist.
    DataError
        If scores are not 0 or 1, an answer has several rows, or there are not two models.
    DesignError
        If there are several tasks, or no item on which one model alone is right.

    Notes
    -----
    Items are independent draws, and the sample. With b and c items on which the left or the right model alone is right,
    b is binomial(b + c, 1/2) if both are right equally often; p = min(1, 2 P(X <= min(b, c))). The interval of the odds
    b / c is that of Clopper and Pearson: it excludes one exactly where p < alpha. The test never exceeds alpha, and is
    cautious with few such items: of five or fewer none is significant at 0.05.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157; Clopper & Pearson (1934), Biometrika 26, 404-413;
    Fay (2010), Biostatistics 11, 373-374 (the interval that goes with the exact test)

    Examples
    --------
    >>> import lmemtest as lt
    >>> answers = {"A": [1] * 9 + [0] * 3, "B": [1] * 2 + [0] * 10}
    >>> found = lt.mcnemar(answers, model=["A", "B"])
    >>> found.to_frame()[["only_left", "only_right", "p_value"]].round(4)
       only_left  only_right  p_value
    0          7           0   0.0156
    """
    alpha = check_fraction(alpha, "alpha")
    roles: dict[str, Any] = {"model": model, "item": item, "task": task, "score": score, "epoch": None, "judge": None}
    blocks, _, _, about = read_answers(table, **roles, drop_duplicates=drop_duplicates, direction="maximize")
    names = list(blocks.algorithms)
    if len(names) > 2:
        raise DataError(
            f"mcnemar compares two models, and {model!r} has {len(names):,}: {joined(names)}. Keep two, or call "
            "evaluate."
        )
    if len(blocks.names) > 1:
        raise DesignError(
            f"mcnemar is for one task, and {named('task')} {task!r} has {len(blocks.names):,}. Keep one, or call "
            "evaluate."
        )
    if about["graded"]:
        raise DataError(
            f"mcnemar counts right answers, so scores must be 0 or 1, and {blocks.score!r} has scores between. Call "
            "evaluate, or write 1 for what counts as right and 0 for the rest."
        )
    answered = ~np.isnan(blocks.means).any(axis=1)
    left, right = (blocks.means[answered] > 0.5).T
    b, c, n = int((left & ~right).sum()), int((right & ~left).sum()), int(answered.sum())
    if b + c == 0:
        raise DesignError(
            f"There is no item on which {' or '.join(names)} alone is right, of {n:,} that both answered, so there is "
            "nothing to test. Add items on which they differ."
        )
    p = float(min(1.0, 2.0 * special.bdtr(min(b, c), b + c, 0.5)))
    shares = np.array([b / (b + c), *clopper_pearson(b, b + c, 1.0 - alpha)])
    with np.errstate(divide="ignore"):
        odds, low, high = (shares / (1.0 - shares)).tolist()
    differ, level = bool(below(np.array([p]), alpha)[0]), percent(1.0 - alpha)
    counts = {"n_items": n, "both": int((left & right).sum()), "only_left": b, "only_right": c}
    row = {"left": names[0], "right": names[1], **counts, "neither": n - counts["both"] - b - c}
    row |= {"odds_ratio": odds, "ci_low": low, "ci_high": high, "p_value": p, "differ": differ}
    first, second = names if b >= c else names[::-1]
    most, least, ends = max(b, c), min(b, c), (low, high) if b >= c else (1.0 / high, 1.0 / low if low else np.inf)
    verdict = f"{first} is significantly better" if differ else "neither is shown to be better"
    lower, upper = (format_number(end, 3) for end in ends)
    ratio = f"{format_number(most / least, 3)} to 1 ({level} interval {lower} to {upper})" if least else ""
    ratio = ratio or f"at least {lower} to 1 (the lower end of the {level} interval)"
    return Answer(
        question="mcnemar",
        title=f"{names[0]} and {names[1]} on {counted(n, 'item')}, by {blocks.score}",
        tables={"pairs": pd.DataFrame([row])},
        values={"alpha": alpha},
        facts=(
            "Exact two-sided test of the items on which one model alone is right (McNemar's); items are the sample.",
            f"odds_ratio: only_left to only_right, with Clopper and Pearson's {level} interval, which excludes one "
            "exactly where the test rejects.",
        ),
        findings=(
            f"Of the {counted(b + c, 'item')} on which one alone is right it is {first} on {most:,} and {second} on "
            f"{least:,}: {verdict} ({p_text(p)}).",
            f"The odds that it is {first} are {ratio}.",
        ),
        notes=(f"{counted(int((~answered).sum()), 'item')} without an answer of both models left out.",)
        * bool((~answered).any()),
        formats={"p_value": "p", **dict.fromkeys(("odds_ratio", "ci_low", "ci_high"), ".3f")},
    )
