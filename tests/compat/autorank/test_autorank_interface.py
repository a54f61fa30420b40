"""The interface is that of autorank 1.3.0: signatures, fields, errors, what is printed; and it loads nothing."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import lmemtest.compat.autorank as module
from lmemtest.compat.autorank import (
    RankResult,
    _util,
    autorank,
    create_report,
    latex_report,
    latex_table,
    plot_posterior_maps,
    plot_stats,
)
from lmemtest.errors import LmemtestError

DATA = pd.DataFrame([[1, 2], [3, 4], [5, 6], [7, 8], [9, 0], [1, 2]], columns=["A", "B"])


def defaults(signature):
    return {p.name: (p.kind, p.default) for p in signature.parameters.values()}


def parsed(text):
    """A signature as it was stored."""
    namespace = {}
    exec(f"def function{text}: ...", namespace)
    return inspect.signature(namespace["function"])


def test_signatures_are_the_same(peer):
    for name, text in peer["signatures"].items():
        assert defaults(inspect.signature(getattr(module, name))) == defaults(parsed(text)), name
    assert set(module.__all__) == {*peer["signatures"], "RankResult"}


def test_private_signatures_are_the_same(peer):
    """But for one argument more, which some callers pass."""
    for name, text in peer["private signatures"].items():
        ours, theirs = defaults(inspect.signature(getattr(_util, name))), defaults(parsed(text))
        assert list(ours)[: len(theirs)] == list(theirs), name
        assert list(ours)[len(theirs) :] == (["plot_order"] if name == "rank_multiple_nonparametric" else []), name


def test_fields_are_the_same_and_may_be_left_out(peer):
    assert list(RankResult._fields) == peer["fields"]
    optional = RankResult._fields[RankResult._fields.index("num_samples") + 1 :]
    assert dict.fromkeys(optional) == RankResult._field_defaults
    by_hand = RankResult(*range(13))
    assert by_hand.num_samples == 12
    assert by_hand._replace(cd=1.5)._asdict()["cd"] == 1.5


def test_a_result_shows_its_fields(ours):
    text = str(ours("friedman"))
    assert text.startswith("RankResult(rankdf=\n")
    for line in (
        "omnibus=friedman",
        "posthoc=nemenyi",
        "homogeneity_test=levene",
        "num_samples=40",
        "plot_order=None)",
    ):
        assert f"\n{line}" in text
    assert "sample_matrix" not in text


BAD = [
    (TypeError, {"data": "foo"}),
    (ValueError, {"data": DATA[["A"]]}),
    (ValueError, {"data": DATA.iloc[:4]}),
    (ValueError, {"data": DATA.assign(A="x")}),
    (ValueError, {"data": DATA.assign(A=np.inf)}),
    (TypeError, {"alpha": "foo"}),
    (TypeError, {"alpha": 1}),
    (ValueError, {"alpha": 1.1}),
    (ValueError, {"alpha": -0.05}),
    (ValueError, {"alpha": float("nan")}),
    (TypeError, {"verbose": "foo"}),
    (TypeError, {"order": True}),
    (ValueError, {"order": "foo"}),
    (TypeError, {"approach": True}),
    (ValueError, {"approach": "foo"}),
    (TypeError, {"rope": "foo"}),
    (ValueError, {"rope": -1.0}),
    (TypeError, {"rope_mode": 0}),
    (ValueError, {"rope_mode": "foo"}),
    (TypeError, {"nsamples": "foo"}),
    (TypeError, {"nsamples": 10.5}),
    (ValueError, {"nsamples": 0}),
    (TypeError, {"effect_size": 0}),
    (ValueError, {"effect_size": "foo"}),
    (TypeError, {"force_mode": 0}),
    (ValueError, {"force_mode": "foo"}),
    (TypeError, {"plot_order": "foo"}),
    (ValueError, {"plot_order": ["A"]}),
    (TypeError, {"plot_order": ["A", 1]}),
    (ValueError, {"plot_order": ["A", "C"]}),
    (ValueError, {"plot_order": ["A", "A"]}),
]


@pytest.mark.parametrize(("error", "options"), BAD)
def test_bad_arguments_raise_what_callers_catch(error, options):
    with pytest.raises(error) as raised:
        autorank(**{"data": DATA, **options})
    assert isinstance(raised.value, LmemtestError)
    assert next(iter(options)) in str(raised.value)


def test_other_things_are_no_results():
    for function in (plot_stats, plot_posterior_maps, create_report, latex_table, latex_report):
        refuses(TypeError, "result must be a RankResult", function, result="foo")
    nothing = RankResult(*[None] * 3, "bayes", *[None] * 9)
    refuses(ValueError, "plot_stats draws frequentist results", plot_stats, nothing)
    for option in ("effect_size_relation", "posterior_relation"):
        with pytest.raises(ValueError, match=f"{option} must be 'best' or 'above' or 'both', got 'foo'"):
            latex_table(nothing, **{option: "foo"})
    for option, (kind, value) in {"width": (ValueError, 0.0), "cmaps": (ValueError, ["foo"])}.items():
        with pytest.raises(kind):
            plot_posterior_maps(nothing, **{option: value})
    for option in ("width", "cmaps", "annot_colors", "axes"):
        refuses(TypeError, option, plot_posterior_maps, nothing, **{option: "foo"})
    refuses(ValueError, "draws Bayesian results", plot_posterior_maps, nothing._replace(omnibus="foo"))
    refuses(ValueError, "omnibus must be", create_report, RankResult(pd.DataFrame({"mean": [1.0]}), *[None] * 12))


def test_names_of_index_and_columns_are_left_out(table):
    data = table("skewed").rename_axis(index="row", columns="name")
    data = data.set_index(pd.MultiIndex.from_product([range(8), range(5)], names=["a", "b"]))
    result = autorank(data)
    assert result.rankdf.index.name is None
    assert data.columns.name == "name"
    pd.testing.assert_frame_equal(result.rankdf, autorank(table("skewed")).rankdf)


def test_a_result_may_be_built_by_hand(capsys):
    """As callers do who bring ranks of their own."""
    ranks = pd.DataFrame({"meanrank": [1.2, 2.0, 2.8]}, index=["A", "B", "C"])
    result = RankResult(
        ranks, 0.001, 0.9, "friedman", "nemenyi", False, [0.01] * 3, True, 0.5, "levene", 0.05, 0.017, 20
    )
    assert _util.get_sorted_rank_groups(result, False)[1:] == (["A", "B", "C"], [(0, 1), (1, 2)])
    assert _util.get_sorted_rank_groups(result, True)[1:] == (["C", "B", "A"], [(0, 1), (1, 2)])
    create_report(result)
    latex_table(result)
    out = capsys.readouterr().out
    assert "A and B; B and C" in out
    create_report(result._replace(rankdf=ranks.iloc[::-1]))
    assert "Best first, the populations are A (MR=1.200), B" in capsys.readouterr().out
    assert r"C & 2.800 \\" in out


def test_test_normality_is_no_test_of_pytest():
    assert _util.test_normality.__test__ is False


def test_importing_loads_neither_numpy_nor_matplotlib():
    program = (
        "import sys, json; from lmemtest.compat.autorank import autorank, plot_stats, RankResult; "
        "print(json.dumps([n for n in ('numpy', 'pandas', 'scipy', 'matplotlib', 'statsmodels') if n in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_sorted_ranks_are_read_by_position_and_by_name():
    """As CARP-S does: ``sorted_ranks[l]`` with the positions of a group."""
    table = pd.DataFrame({"meanrank": [1.2, 2.0, 2.8]}, index=["A", "B", "C"])
    result = RankResult(table, 0.001, 0.9, "friedman", "nemenyi", *[None] * 4, "levene", 0.05, 0.017, 20)
    ranks, _, groups = _util.get_sorted_rank_groups(result, False)
    assert [(ranks[first], ranks[last]) for first, last in groups] == [(1.2, 2.0), (2.0, 2.8)]
    assert ranks["B"] == ranks[np.int64(1)] == ranks[-2] == 2.0
    assert ranks[ranks > 1.2][0] == 2.0  # what pandas makes of it is read alike
    numbered = result._replace(rankdf=table.set_axis([2, 0, 1]))
    assert _util.get_sorted_rank_groups(numbered, False)[0][0] == 2.0  # a name that is a number stays a name


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "function",
    [
        lambda data: _util.rank_multiple_nonparametric(data, 0.05, False, False, "ascending", None, None),
        lambda data: _util.rank_multiple_normal_homoscedastic(data, 0.05, False, "ascending", None, None),
        lambda data: _util.rank_two(data[["A", "B"]], 0.05, False, True, "ascending", None, None),
        lambda data: _util.rank_bayesian(data, 0.05, False, True, "ascending", 0.1, "effsize", 9, None, 0, None),
        lambda data: _util.test_normality(data, 0.05, False),
    ],
)
def test_a_missing_cell_is_refused_by_each_comparison(function, value):
    data = DATA.assign(C=DATA["A"] ** 2).astype(float)
    data.iloc[3, 1] = value
    refuses(ValueError, r"are missing or infinite \(in column 'B', for instance", function, data)


def test_no_p_value_is_printed_as_zero(capsys):
    data = pd.DataFrame({name: np.arange(400.0) % 7 + place for place, name in enumerate("ABCDEF")})
    result = autorank(data, verbose=True)
    assert result.pvalue < 1e-300
    printed = capsys.readouterr().out
    assert "p < 0.001" in printed
    assert not [line for line in printed.splitlines() if "p = 0.000" in line or "p=0.000" in line]
