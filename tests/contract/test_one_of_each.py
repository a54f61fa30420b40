"""Classical intervals and tests, checks of numbers and types of arrays are written once, and used from there."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import Any

import pytest
from source import module_of, nodes

WRITTEN_ELSEWHERE = "compat."  # has the numbers of other packages, as these write them

HOME = {
    "clopper_pearson": "core.proportions",
    "jeffreys": "core.proportions",
    "wilson": "core.proportions",
    "bartlett": "lmm.hypotheses.variance_tests",
    "levene": "lmm.diagnostics.scale",  # of sums that a simulation has
    "upper_tail": "lmm.distributions.student",
    "two_sided_p": "lmm.distributions.student",
    "t_quantile": "lmm.distributions.student",
    "noncentrality_interval": "lmm.distributions.student",
    "bounded_mean_interval": "core.proportions",
    "bca_shares": "core.resampling",
    "drawn_interval": "core.resampling",
    "drawn_again": "core.resampling",
    "sign_patterns": "core.resampling",
    "random_signs": "core.resampling",
    "dealt": "core.resampling",
    "exchanged_within": "core.resampling",
    "p_of_draws": "core.resampling",
    "sign_test": "core.proportions",
    "quantile_places": "core.proportions",
    "tied_codes": "core.rounding",
    "group_codes": "core.codes",
    "df_of_sum": "lmm.distributions.student",
    "variance_interval": "lmm.distributions.student",
    "equal_variances": "lmm.hypotheses.variance_tests",
    "shapiro_wilk": "lmm.diagnostics.normality",
    "block_residuals": "bench.ranking.classical",
    "residual_variance": "bench.ranking.classical",
    "bootstrap": "lmm.intervals.bootstrap",
    "adjust_raw": "lmm.means.adjust",  # Bonferroni, Šidák, Holm, Benjamini and Hochberg
    "repeated_measures_anova": "bench.ranking.classical",
    "friedman": "bench.ranking.classical",
    "skillings_mack": "bench.ranking.classical",
    "wilcoxon": "bench.ranking.classical",
    "shift_intervals": "bench.ranking.classical",
    "signed_rank": "bench.ranking.bayesian",  # the Bayesian one
    "score_interval": "bench.outperforming.intervals",  # of P(A > B)
    "quantile_ranks": "tuning.curves",
    "check_number": "core.validate",
    "is_number": "core.validate",
    "is_finite": "core.validate",
}
# Quantiles of beta distributions that are no interval of a proportion.
ORDER_STATISTICS = {"tuning.band", "tuning.order_statistics"}
# Student's t: a mixture of several, and the mean cost of a trial, for which tuning needs no mixed models.
STUDENTS = {"lmm.distributions.student", "lmm.intervals.partial_pooling", "tuning.costs"}
NUMBER_TYPES = {"Real", "float"}


def of_kind(*kinds: type[ast.AST]) -> list[tuple[str, Any]]:
    """The nodes of these types, each with its module."""
    places = [(module_of(path), node) for path, node in nodes(*kinds)]
    return [(module, node) for module, node in places if not module.startswith(WRITTEN_ELSEWHERE)]


def written_again() -> list[str]:
    """Functions that have the name of one with a place of its own, in another module."""
    return [
        f"{module}.{node.name}"
        for module, node in of_kind(ast.FunctionDef)
        if HOME.get(node.name.lstrip("_"), module) != module
    ]


def users(*names: str) -> set[str]:
    """Modules that use one of these functions of SciPy."""
    return {
        module
        for module, node in of_kind(ast.Name, ast.Attribute)
        if (node.attr if isinstance(node, ast.Attribute) else node.id) in names
    }


def numbers_by_hand() -> list[str]:
    """Conditions that ask for a number and for no boolean, which is what `is_number` does."""
    return [
        f"{module}: {ast.unparse(node)}"
        for module, node in of_kind(ast.BoolOp)
        if module != "core.validate"
        if "bool" in (types := instances_of(node)) and types & NUMBER_TYPES
    ]


def instances_of(condition: ast.AST) -> set[str]:
    """The types that a condition asks for."""
    types = [
        node.args[1]
        for node in ast.walk(condition)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
    ]
    return {ast.unparse(part).split(".")[-1] for each in types for part in ast.walk(each)}


def array_types() -> list[str]:
    return [
        f"{module}: {ast.unparse(node)}"
        for module, node in of_kind(ast.Assign, ast.AnnAssign)
        if module != "core.arrays"
        if node.value is not None and ast.unparse(node.value).startswith(("NDArray[", "npt.NDArray["))
    ]


def checks_of_one_name() -> list[str]:
    homes = defaultdict(list)
    for module, tree in of_kind(ast.Module):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
                homes[node.name].append(module)
    return [f"{name}: {', '.join(modules)}" for name, modules in homes.items() if len(modules) > 1]


@pytest.mark.parametrize("count", [written_again, numbers_by_hand, array_types, checks_of_one_name])
def test_nothing_is_written_twice(count) -> None:
    repeated = count()
    print(f"{count.__name__}: {len(repeated)} in {len(of_kind(ast.Module))} modules")
    assert repeated == []


def test_what_has_a_place_is_there() -> None:
    there = {f"{module}.{node.name}" for module, node in of_kind(ast.FunctionDef)}
    assert {f"{home}.{name}" for name, home in HOME.items()} <= there


def test_proportions_have_one_file() -> None:
    assert users("betaincinv") == {"core.proportions", *ORDER_STATISTICS}


def test_students_t_has_one_file() -> None:
    assert users("stdtr", "stdtrit") == STUDENTS
