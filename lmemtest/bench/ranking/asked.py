"""The options of a ranking, and what its tests are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmemtest.core.words import format_number

TESTS = {
    "lmem": ("auto",),
    "frequentist": ("auto", "moderated", "t", "tukey", "nemenyi", "conover", "wilcoxon"),
    "bayesian": ("auto", "signed_rank", "hierarchical"),
}
TEST_NAMES = {
    "moderated": "t-tests with moderated standard errors",
    "t": "paired t-tests",
    "tukey": "Tukey's HSD of the repeated-measures ANOVA",
    "nemenyi": "Nemenyi's test",
    "conover": "Conover's test",
    "wilcoxon": "Wilcoxon signed-rank tests",
    "lmem": "marginal means of the mixed model",
    "signed_rank": "Bayesian signed-rank test",
    "hierarchical": "Bayesian hierarchical model",
}
ON_RANKS = ("nemenyi", "conover")
OWN_VARIANCES = ("moderated", "t", "wilcoxon")  # each pair has its own: no Tukey, no Dunnett
PAIR_ADJUSTMENTS = ("tukey", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none")
CONTROL_ADJUSTMENTS = ("dunnett", "holm", "sidak", "bonferroni", "fdr", "none")


ROPE_NAMES = {"effect": "pooled standard deviations", "mad": "pooled median absolute deviations"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a caller of `rank` asked for, checked."""

    alpha: float
    test: str = "auto"
    adjust: str | None = None
    vcov: str | None = None
    control: str | None = None
    rope: float = 0.0
    rope_unit: str = "score"
    n_draws: int = 50_000
    rng: Any = 0

    def rope_text(self, score: str) -> str:
        """What counts as practically equivalent."""
        if self.rope == 0.0:
            return "no difference counts as negligible (rope = 0)"
        unit = ROPE_NAMES.get(self.rope_unit, f"units of {score}")
        return f"differences of up to {format_number(self.rope)} {unit} count as practically equivalent"
