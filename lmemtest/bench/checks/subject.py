"""What the checks of a table look at, computed once, and how they report what they found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.checks.findings import CheckOutcome
from lmemtest.bench.checks.overview import cell_table
from lmemtest.bench.data.scales import residual_scales
from lmemtest.core.verdicts import SEVERITIES, Finding

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.data.study import Study
    from lmemtest.lmm.model import LmmFit


@dataclass(kw_only=True, eq=False)
class Subject:
    """What the checks look at, computed once."""

    runs: Runs
    alpha: float
    form: str
    rng: int | np.random.Generator | None
    modelled: tuple[str, Callable[[Any], Any]] | None  # a function of the score: scales are those of its values

    @cached_property
    def study(self) -> Study:
        return self.runs.study.detailed

    @cached_property
    def judged(self) -> Study:
        """The study of the values whose scales count."""
        return self.study if self.modelled is None else self.study.with_values(self.modelled[1])

    @cached_property
    def cells(self) -> pd.DataFrame:
        return cell_table(self.study)

    @cached_property
    def scales(self) -> pd.DataFrame:
        return residual_scales(self.judged)

    @cached_property
    def tied(self) -> tuple[np.ndarray, np.ndarray]:
        kind = self.study.kind
        return tied_pairs(self.study, limit=kind.high if kind.kind == "capped" else float("inf"))

    @cached_property
    def fit(self) -> LmmFit:
        """The recommended model."""
        from lmemtest.bench.modelling.recommend import recommend
        from lmemtest.lmm.model import fit_lmm

        model = recommend(self.runs)
        return fit_lmm(model.formula, model.runs)


def tied_pairs(study: Study, *, limit: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
    """By benchmark: pairs of algorithms with equal scores below a limit on the same instance, seed and budget; all."""
    block = study.code("instance") * np.int64(len(study.names("seed"))) + study.code("seed")
    block = block * len(study.names("budget")) + study.code("budget")
    order = np.argsort(block, kind="stable")
    block, mean = block[order], study.points.mean[order]
    benchmark = study.code("benchmark")[order]
    size = len(study.names("benchmark"))
    equal, pairs = np.zeros(size, dtype=int), np.zeros(size, dtype=int)
    for lag in range(1, len(study.names("algorithm"))):  # a block has at most one entry per algorithm
        together = (block[lag:] == block[:-lag]) & np.isfinite(mean[lag:]) & np.isfinite(mean[:-lag])
        if not together.any():
            break
        pairs += np.bincount(benchmark[lag:][together], minlength=size)
        tied = together & (mean[lag:] == mean[:-lag]) & (mean[lag:] < limit)
        equal += np.bincount(benchmark[lag:][tied], minlength=size)
    return equal, pairs


def outcome(findings: Sequence[Finding], text: str = "", *, skipped: bool = False, result: Any = None) -> CheckOutcome:
    """What a check found: findings, the worst first, or a sentence on what is fine or why it was left out."""
    ordered = tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
    return CheckOutcome(findings=ordered, text=text, skipped=skipped, result=result)


def left_out(reason: str) -> CheckOutcome:
    return outcome((), f"Left out: {reason}", skipped=True)
