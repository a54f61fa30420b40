"""The values of options, each list in one place: what is checked is what a message prints. And their names."""

from __future__ import annotations

DIRECTIONS = ("minimize", "maximize")
NEEDED = ("score", "direction", "algorithm")  # roles without which nothing is compared
# What the columns of a table of runs mean: the arguments of `Runs`, and of what takes a dataframe in their place.
ROLES = (*NEEDED, "benchmark", "family", "seed", "budget", "metafeatures", "ignore", "seed_shared", "failed")
DIRECTION_WORDS = {
    "minimize": "minimize minimise min minimum low lower smaller lower_is_better",
    "maximize": "maximize maximise max maximum high higher larger higher_is_better",
}  # what people write for them
DDF_METHODS = ("satterthwaite", "kenward-roger", "residual", "asymptotic")
DDF_NAMES = {
    "satterthwaite": "Satterthwaite",
    "kenward-roger": "Kenward-Roger",
    "residual": "residual",
    "asymptotic": "infinite",
    "cluster-robust": "cluster-robust Satterthwaite",  # with vcov=, never as an argument
    "clusters": "between-cluster",  # of votes
}
ADJUSTMENT_NAMES = {
    "tukey": "Tukey",
    "stepdown": "step-down (Tukey and Shaffer)",
    "singlestep": "single-step (Tukey on normal scores)",
    "mvt": "multivariate t",
    "shaffer": "Shaffer",
    "holm": "Holm",
    "sidak": "Šidák",
    "bonferroni": "Bonferroni",
    "fdr": "Benjamini-Hochberg",
    "none": "no",
    "dunnett": "Dunnett",
}  # as they read before "adjustment"
ADJUSTMENTS = tuple(name for name in ADJUSTMENT_NAMES if name != "dunnett")  # of pairs and contrasts
VCOV = ("moderated", "model")  # what standard errors come from, by name
ERROR_NAMES = {
    "model": "model-based",
    "moderated": "moderated",
    "larger": "the larger of model-based and moderated",  # by default of generalised models
    "own": "each comparison's own",
    "cluster-robust": "cluster-robust",
}  # as they read before "standard errors"
STEPWISE_ADJUSTMENTS = ("stepdown", "shaffer", "holm", "fdr")  # what a pair must pass depends on the other pairs
JOINT_ADJUSTMENTS = ("mvt", "dunnett")  # single-step tests from the joint t distribution of the family
CONTROL_ADJUSTMENTS = ("dunnett", "holm", "sidak", "bonferroni", "fdr", "none")
REPORT_ADJUSTMENTS = (
    "stepdown",
    "singlestep",
    "tukey",
    "shaffer",
    "holm",
    "sidak",
    "bonferroni",
    "fdr",
    "none",
)  # of all pairs, in a report

ROPE_UNITS = ("score", "effect", "mad")  # of the width of a region of practical equivalence

# What the scores of a run over its budget count; "model" keeps them all.
CURVES = ("mean", "last", "best", "area")
CURVE_CHOICES = (*CURVES, "model")
