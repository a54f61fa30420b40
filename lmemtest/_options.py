"""The values of options, each list in one place: what is checked is what a message prints."""

from __future__ import annotations

__all__ = ["DDF_METHODS", "REPORT_ADJUSTMENTS"]

DDF_METHODS = ("satterthwaite", "kenward-roger", "residual", "asymptotic")
REPORT_ADJUSTMENTS = (
    "stepdown",
    "tukey",
    "shaffer",
    "holm",
    "sidak",
    "bonferroni",
    "fdr",
    "none",
)  # of all pairs, in a report
