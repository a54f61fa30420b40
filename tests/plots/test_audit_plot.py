"""The figure of an audit shows its numbers."""

from __future__ import annotations

import pytest
from pytest import approx

from lmemtest.bench.checks.audit import _answer, _row
from lmemtest.errors import ArgumentError
from lmemtest.plots.checks import audit_plot


def make_audit():
    common = {"n_draws": 200, "failed": 0, "unconverged": 0}
    rates = [
        _row(unit, model, {**common, "rejected": rejected}, "y ~ a", 0.05)
        for unit, model, rejected in [
            ("benchmark", "naive", 160),
            ("benchmark", "recommended", 11),
            ("run", "naive", 20),
            ("run", "recommended", 9),
        ]
    ]
    return _answer(rates, 0.05, {"benchmark": "x", "run": "y"}, ())


def test_markers_are_the_rates_in_percent():
    audit = make_audit()
    ax = audit_plot(audit)
    estimates = [line for line in ax.lines if line.get_label() == "_estimates"]
    assert [list(line.get_xdata()) for line in estimates] == [[80.0, 10.0], [5.5, 4.5]]
    intervals = [line.get_xdata() for line in ax.lines if line.get_label() == "_interval"]
    assert len(intervals) == 4
    assert list(intervals[0]) == approx((100 * audit.rates.loc[0, ["ci_low", "ci_high"]].astype(float)).tolist())
    reference = [line for line in ax.lines if line.get_label() == "_reference"]
    assert reference[0].get_xdata()[0] == approx(5.0)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["exchange by benchmark", "exchange by run"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["naive model", "recommended model"]


def test_the_axis_says_what_the_line_is():
    assert "nominal 5 %" in audit_plot(make_audit()).get_xlabel().replace("\n", " ")


def test_only_audits_are_drawn():
    with pytest.raises(ArgumentError, match=r"audit must be the result of audit\(\), got dict."):
        audit_plot({})
