"""The explorer without a page: what a state in an address gives is what the package says of the reduced table."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import shlex
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest
from levels import half
from study import make_runs

import lmemtest as lt
from lmemtest.bench.data.guessing import guess
from lmemtest.bench.robustness.variant import refitted
from lmemtest.core.caller import on_command_line
from lmemtest.report import explore
from lmemtest.report.analysis import Analysis
from lmemtest.report.explore import explorer, plan_of
from lmemtest.report.first_screen import bare_verdict, verdict
from lmemtest.report.page import parts_of, ticks_of


@pytest.fixture(scope="module")
def runs() -> lt.Runs:
    return make_runs(4, 8, 3, priors=2, shift=[0.0, 0.3, 1.5, 1.6], metafeatures=("prior",))


@pytest.fixture(scope="module")
def ask(runs: lt.Runs) -> Any:
    return explorer(runs)


def parts(texts: Any) -> Any:
    """Texts as JSON has them."""
    return json.loads(json.dumps(parts_of(texts)))


STATES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "without.benchmark=b03&alpha=0.01": ({"benchmark": ["b03"]}, {}, {"alpha": 0.01}),
    "without.algorithm=A&without.seed=1&adjust=holm&vcov=model": (
        {"algorithm": ["A"], "seed": [1]}, {}, {"adjust": "holm", "vcov": "model"}),
    "only.prior=p0&ddf=kenward-roger&vcov=model": ({}, {"prior": ["p0"]}, {"ddf": "kenward-roger", "vcov": "model"}),
    "population=run&reference=C": ({}, {}, {"population": "run"}),
    "formula=loss+~+algorithm+%2B+(1|benchmark)": ({}, {}, {"formula": "loss ~ algorithm + (1|benchmark)"}),
}  # fmt: skip


@pytest.mark.parametrize("query", STATES)
def test_a_state_is_answered_as_the_report_of_the_reduced_table_is(runs: lt.Runs, ask: Any, query: str) -> None:
    without, only, options = STATES[query]
    table = runs.to_frame()
    for column, levels in without.items():
        table = table[~table[column].isin(levels)]
    for column, levels in only.items():
        table = table[table[column].isin(levels)]
    analysis = lt.analyze(lt.Runs(table.reset_index(drop=True), **runs.roles()), **options)
    answer = json.loads(json.dumps(ask("answer", query), allow_nan=False))
    assert answer["verdict"] == parts(bare_verdict(analysis))
    assert answer["matrix"]["codes"] == analysis.decisions.codes.tolist()
    assert answer["levels"] == list(analysis.decisions.levels)
    checks = ask("checks", query)
    assert checks["verdict"] == parts(verdict(analysis))
    assert [problem["title"] for problem in checks["problems_of_table"]] == [o.check for o in analysis.check.to_fix]
    assert answer["problems"] == []
    state = ask("answer", query)["state"]
    assert ask("answer", urlencode(state))["state"] == state


LEFT_OUT = [("algorithm", "B"), ("benchmark", "b03"), ("seed", 1), ("prior", "p0")]


@pytest.mark.daily(3)
@pytest.mark.parametrize(("scale", "left_out"), half(["rank", "minmax", "zscore", "regret"], LEFT_OUT))
def test_scores_are_normalised_as_variant_does_it(runs: lt.Runs, ask: Any, scale: str, left_out: Any) -> None:
    column, level = left_out
    answer = ask("answer", f"without.{column}={level}&scale={scale}&population=run")
    pairs = lt.variant(runs, without={column: level}, scale=scale, population="run")
    behind = pairs.behind(answer["levels"][0], "minimize")["estimate"]
    for row in answer["forest"]["rows"][1:]:
        np.testing.assert_allclose(row["ends"][0], behind[row["name"]], rtol=1e-9)
    assert answer["matrix"]["codes"] == pairs.decisions().codes.tolist()
    normalised = runs.filter(**{column: [one for one in runs.levels(column) if one != level]}).normalize(scale)
    assert answer["changes"][:2] == [f"without {column} {level}", f"by {normalised.score}"]
    assert answer["changes"][2].startswith("for these")


def test_the_places_in_figures_are_the_numbers_of_the_pairs(runs: lt.Runs, ask: Any) -> None:
    answer, pairs = ask("answer", "reference=B"), lt.variant(runs)
    behind = pairs.behind("B", "minimize")
    for row in answer["forest"]["rows"]:
        if row["name"] != "B":
            np.testing.assert_allclose(row["ends"], behind.loc[row["name"], ["estimate", "ci_low", "ci_high"]])
    assert answer["forest"]["reference"] == "B"
    assert answer["ranking"]["columns"][3] == "behind B (95 % CI)"
    decisions = pairs.decisions()
    np.testing.assert_allclose(answer["diagram"]["means"], decisions.means)
    groups = [[answer["levels"][i] for i in group] for group in answer["diagram"]["groups"]]
    assert groups == [list(group) for group in decisions.groups if len(group) > 1]
    code = dict(zip(answer["levels"], np.array(answer["matrix"]["codes"])[:, answer["levels"].index("B")], strict=True))
    assert {row["name"]: row["code"] for row in answer["forest"]["rows"]} == code


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("bogus=1", "There is no such option. Options: role, direction, without, only, scale"),
        ("alhpa=1", "Did you mean 'alpha'?"),
        ("alpha=7", "“alpha” must be"),
        ("alpha=x", "It is no number."),
        ("scale=ranks", "“score scale” must be"),
        ("without.bench=b01", "Columns:"),
        ("without.benchmark=b99", "It does not occur in the column 'benchmark'."),
        ("reference=Z", "It is no algorithm."),
        ("role.tool=seed", "There is no such column."),
        ("role.prior=colour", "role must be"),
        ("direction=up", "“better scores” must be"),
        ("without.=1", "Columns:"),
    ],
)
def test_what_an_address_cannot_mean_is_named_and_the_rest_is_used(ask: Any, field: str, words: str) -> None:
    answer = ask("answer", f"{field}&without.benchmark=b02")
    assert len(answer["problems"]) == 1
    assert answer["problems"][0].startswith(f"{field} in the address is not used.")
    assert words in answer["problems"][0]
    assert answer["state"] == [("without.benchmark", "b02")]
    assert answer["changes"] == ["without benchmark b02"]


def test_an_address_of_too_many_fields_is_refused_as_a_whole(ask: Any) -> None:
    answer = ask("answer", "&".join(["a=1"] * (explore.MOST_FIELDS + 1)))
    assert answer["problems"] == ["The address has more than 5,000 fields, and is not used."]
    assert answer["state"] == []


def test_an_error_has_its_next_step_and_the_controls_that_mend_it(ask: Any) -> None:
    answer = ask("answer", "only.algorithm=A")
    assert "holds one algorithm only, 'A'" in answer["error"]
    assert "verdict" not in answer
    assert [level for level, kept in answer["controls"]["columns"][1]["levels"] if kept] == ["A"]


def test_where_roles_have_no_reading_there_are_controls_that_mend_it(ask: Any) -> None:
    answer = ask("answer", "role.algorithm=ignore")
    assert "There is no algorithm." in answer["error"]
    assert dict(answer["controls"]["roles"])["algorithm"] == "ignore"


def test_few_analyses_are_kept_and_another_reference_needs_no_other(
    monkeypatch: pytest.MonkeyPatch, runs: lt.Runs
) -> None:
    made: list[weakref.ref[Any]] = []

    def counted(**fields: Any) -> Analysis:
        analysis = Analysis(**fields)
        made.append(weakref.ref(analysis.fit))
        return analysis

    monkeypatch.setattr(explore, "Analysis", counted)
    monkeypatch.setattr(explore, "MOST_ANALYSES", 2)
    ask = explorer(runs)
    for reference in ("A", "B"):
        ask("answer", f"reference={reference}")
        ask("checks", f"reference={reference}")
    assert len(made) == 1
    for benchmark in range(5):
        ask("answer", f"without.benchmark=b0{benchmark}")
    again = ask("answer", "without.benchmark=b00")
    assert len(made) == 6  # the answer is kept
    assert again["changes"] == ["without benchmark b00"]
    gc.collect()
    assert sum(fit() is not None for fit in made) == 2


def test_analyses_that_differ_in_their_tests_share_a_fit(monkeypatch: pytest.MonkeyPatch, runs: lt.Runs) -> None:
    fitted = []
    monkeypatch.setattr(explore, "refitted", lambda *args, **more: fitted.append(more) or refitted(*args, **more))
    ask = explorer(runs)
    for query in ("", "alpha=0.01", "adjust=holm", "vcov=model&ddf=residual"):
        ask("answer", query)
    assert len(fitted) == 1
    ask("answer", "without.benchmark=b01&alpha=0.01")
    assert len(fitted) == 2


def test_answers_of_a_server_advise_in_the_language_in_which_it_was_started(runs: lt.Runs) -> None:
    frame = runs.to_frame()
    frame.loc[0, "loss"] = np.nan
    broken = lt.Runs(frame, **runs.roles())
    with on_command_line(["lmemtest", "explore", "runs.csv"]):
        ask = explorer(broken)
    for asked, advised in ((ask, "--drop-missing"), (explorer(broken), "runs.drop_missing()")):
        with ThreadPoolExecutor(1) as other:
            assert advised in other.submit(asked, "answer", "").result()["error"]


@pytest.mark.parametrize("started", [contextlib.nullcontext(), on_command_line(["lmemtest", "explore", "runs.csv"])])
def test_what_has_a_control_is_advised_by_its_title(runs: lt.Runs, started: Any) -> None:
    with started:
        ask = explorer(runs)
    roles = "under “roles of the columns”"
    assert ask("answer", "population=family")["error"].startswith(
        "“claims about: new families” needs runs with families of benchmarks, and no column is named as their family. "
        f"Name it: “family” {roles}."
    )
    assert ask("answer", "adjust=tukey")["error"].endswith(
        "Give “standard errors: model-based” with it, or leave “adjustment” out."
    )
    assert ask("answer", "role.prior=none")["error"].endswith(
        f"Choose them {roles}: “ignore” for a column that is left out on purpose."
    )
    of_options = {
        "population=run&ddf=kenward-roger": "Use “degrees of freedom: Satterthwaite”.",
        "vcov=moderated&ddf=residual": "They need “degrees of freedom: Satterthwaite”, and three benchmarks or more "
        "that are independent.",
        "formula=loss ~ algorithm&population=run": "“claims about: these benchmarks” and “formula of your own” each "
        "choose the model: give one of them. A random effect of families and algorithms makes families the sample.",
    }
    for query, advised in of_options.items():
        assert ask("answer", query)["error"].endswith(advised)
    titles = ask("answer", "")["controls"]["titles"]
    assert (titles["population"], titles["vcov"], titles["adjust"]) == ("claims about", "standard errors", "adjustment")


def test_a_choice_that_has_no_answer_is_shown_by_its_control(runs: lt.Runs) -> None:
    ask = explorer(runs)
    for query, name in (("population=family", "population"), ("curves=area", "curves")):
        answer = ask("answer", query)
        (control,) = [control for control in answer["controls"]["choices"] if control["name"] == name]
        assert "error" in answer
        assert control["now"] in [value for value, _ in control["values"]]
    assert "curves" not in [control["name"] for control in ask("answer", "")["controls"]["choices"]]


def test_scales_that_differ_are_mended_by_a_control() -> None:
    frame = make_runs(3, 8, 4).to_frame()
    frame["loss"] *= np.where(frame["benchmark"] == frame["benchmark"].iloc[0], 100.0, 1.0)
    unlike = lt.Runs(
        frame, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed"
    )
    (found,) = [one for one in explorer(unlike)("checks", "")["problems_of_table"] if one["title"] == "scales"]
    assert "“score scale: minmax”" in found["text"] or "“score scale: rank”" in found["text"]
    assert "normalize(" not in found["text"]


def test_roles_can_be_corrected() -> None:
    frame = make_runs(3, 6, 3).to_frame()
    frame["time"] = frame["loss"].to_numpy()[::-1]
    wrong = lt.Runs(frame, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark",
                    seed="seed", ignore=("time",))  # fmt: skip
    ask = explorer(wrong)
    answer = ask("answer", "role.time=score&direction=maximize")
    right = lt.Runs(
        frame, score="time", direction="maximize", algorithm="algorithm", benchmark="benchmark", seed="seed"
    )
    assert answer["matrix"]["codes"] == lt.variant(right).decisions().codes.tolist()
    assert answer["changes"] == ["time as score", "maximize it"]
    assert answer["plan"] == answer["verdict"]  # the plan is of the roles as they are now
    assert ("time", "score") in answer["controls"]["roles"]
    assert ask("answer", "role.loss=score")["state"] == []  # as it was
    assert "There is no algorithm." in ask("answer", "role.algorithm=ignore")["error"]
    assert "benchmark" in ask("answer", "role.benchmark=none")["error"]  # it structures the rows


def test_another_score_has_the_direction_that_its_name_says() -> None:
    frame = (
        make_runs(3, 6, 3).to_frame().assign(accuracy=lambda table: -table["loss"], value=lambda table: table["loss"])
    )
    ask = explorer(lt.Runs(frame, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark",
                           seed="seed"))  # fmt: skip
    answer = ask("answer", "role.accuracy=score")
    assert (answer["controls"]["direction"], answer["changes"]) == ("maximize", ["accuracy as score"])
    assert answer["levels"] == ask("answer", "")["levels"]  # it is the loss turned round
    assert ask("answer", "direction=maximize&role.accuracy=score")["state"] == [("role.accuracy", "score")]
    turned = ask("answer", "role.accuracy=score&direction=minimize")
    assert turned["state"] == [("role.accuracy", "score"), ("direction", "minimize")]
    assert ask("answer", "role.value=score")["controls"]["direction"] == "minimize"  # a name that says nothing


def test_readings_that_are_as_good_are_told_until_one_is_chosen() -> None:
    frame = make_runs(3, 6, 3).to_frame().assign(rmse=lambda table: table["loss"] ** 2)
    readings = guess(frame).readings
    ask = explorer(lt.Runs(frame, **readings[0].roles), source={"doubts": readings})
    assert ask("answer", "")["doubts"] == (
        "Names and structure leave 2 readings. Taken: 'loss' is the score. Otherwise: 'rmse' is the score. "
        "Choose under “roles of the columns”."
    )
    assert ask("answer", "alpha=0.01")["doubts"] != ""
    assert ask("answer", "role.rmse=score")["doubts"] == ""
    assert explorer(lt.Runs(frame, **readings[0].roles))("answer", "")["doubts"] == ""


def test_populations_are_offered_that_the_table_has(runs: lt.Runs) -> None:
    def offered(table: lt.Runs) -> list[str]:
        choices = explorer(table)("answer", "")["controls"]["choices"]
        return next(choice["values"] for choice in choices if choice["name"] == "population")

    new, these = ["benchmark", "new benchmarks"], ["run", "these benchmarks"]
    assert offered(runs) == [new, these]
    assert offered(make_runs(3, 2, 2, families=[2] * 6)) == [["family", "new families"], new, these]


def test_roles_of_prepared_scores_are_fixed(runs: lt.Runs) -> None:
    answer = explorer(runs.normalize("rank"))("answer", "role.prior=ignore")
    assert "The table was prepared for these roles." in answer["problems"][0]
    assert answer["controls"]["roles"] == []


def test_variants_are_counted_and_what_is_copied_says_so(runs: lt.Runs) -> None:
    ask = explorer(runs)
    assert ask("answer", "")["exported"].endswith("This is the analysis as planned.")
    ask("answer", "alpha=0.01")
    ask("answer", "alpha=0.01&reference=B")  # the same tests
    ask("answer", "alpha=0.010")
    ask("answer", "only.algorithm=A")  # no answer
    answer = ask("answer", "without.benchmark=b01")
    assert answer["looked"] == 2
    assert answer["exported"].endswith(
        "Exploratory: without benchmark b01. 2 variants of the planned analysis were looked at; the level holds for "
        "one stated beforehand."
    )
    assert answer["plan"] == ask("answer", "")["verdict"]
    assert ask("answer", "")["exported"].endswith("2 variants were looked at beside it.")


def test_the_plan_of_an_analysis_is_its_options(runs: lt.Runs) -> None:
    assert plan_of(lt.analyze(runs)) == {}
    for options in (
        {"alpha": 0.01, "adjust": "holm"},
        {"vcov": "model", "ddf": "kenward-roger"},
        {"population": "run"},
        {"formula": "loss ~ algorithm * prior + (1 | benchmark)"},
        {"dispersion": "benchmark", "formula": "loss ~ algorithm + (1 | benchmark)"},
    ):
        analysis = lt.analyze(runs, **options)
        plan = plan_of(analysis)
        assert plan.keys() == options.keys()
        answer = explorer(runs, plan=plan)("answer", "")
        assert answer["matrix"]["codes"] == analysis.decisions.codes.tolist()
        assert answer["changes"] == []
        assert answer["looked"] == 0


def test_the_plan_of_curves_says_how_they_are_reduced() -> None:
    table = make_runs(3, 6, 3, budgets=3)
    assert plan_of(lt.analyze(table)) == {}
    assert plan_of(lt.analyze(table, curves="last")) == {"curves": "last"}
    assert plan_of(lt.analyze(table, curves="model")) == {"curves": "model"}


@pytest.mark.parametrize("query", ["", "without.benchmark=b03&alpha=0.01&adjust=holm", "only.prior=p0&scale=rank"])
def test_the_code_gives_the_same_answer(runs: lt.Runs, run: Any, tmp_path: Any, query: str) -> None:
    path = tmp_path / "my runs.csv"
    runs.to_frame().to_csv(path, index=False)
    answer = explorer(runs, source={"path": str(path), "line": shlex.join})("answer", query)
    space: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(answer["code"]["python"], space)
    assert space["pairs"].decisions(alpha=space["pairs"].alpha).codes.tolist() == answer["matrix"]["codes"]
    outcome = run(*shlex.split(answer["code"]["command"])[1:], "--json")
    assert outcome.code == 0, outcome.err
    pairs = {(row["left"], row["right"]): row["p_value"] for row in json.loads(outcome.out)["pairs"]}
    table = space["pairs"].to_frame()
    np.testing.assert_allclose(
        [pairs[pair] for pair in zip(table["left"], table["right"], strict=True)], table["p_value"], rtol=1e-7
    )


def test_there_is_no_command_where_it_would_prepare_other_scores(runs: lt.Runs) -> None:
    source = {"path": "runs.csv", "typed": ["--normalize", "rank"], "line": shlex.join}
    ask = explorer(runs.normalize("rank"), source=source)
    assert ask("answer", "")["code"]["command"].startswith("lmemtest report runs.csv --normalize rank")
    code = ask("answer", "without.algorithm=A")["code"]
    assert (code["command"], code["why"]) == ("", "A command would prepare the scores anew, of what is left.")
    assert code["python"].splitlines()[2].startswith("# runs: those that were explored")


def test_there_is_no_command_that_would_keep_other_rows(runs: lt.Runs) -> None:
    source = {"path": "runs.csv", "typed": ["--where", "prior=p0"], "line": shlex.join}
    ask = explorer(runs, source=source)
    assert "--where prior=p0 --score loss" in ask("answer", "")["code"]["command"]
    assert "--where benchmark!=b01" in ask("answer", "without.benchmark=b01")["code"]["command"].replace("'", "")
    code = ask("answer", "only.algorithm=A&only.algorithm=B")["code"]
    assert (code["command"], code["why"]) == ("", "A command cannot keep some of what --where keeps.")


def test_a_formula_and_what_chooses_the_model_replace_each_other(runs: lt.Runs) -> None:
    formula = "loss ~ algorithm + (1 | benchmark)"
    answer = explorer(runs, plan={"population": "run"})("answer", urlencode({"formula": formula}))
    assert answer["formula"] == formula
    answer = explorer(runs, plan={"formula": formula})("answer", "population=run")
    assert answer["changes"] == ["for these 8 benchmarks"]
    assert "error" in explorer(runs)("answer", urlencode({"formula": formula, "population": "run"}))


def test_levels_of_tests_keep_their_digits(ask: Any) -> None:
    one, other = (ask("answer", f"alpha={alpha}") for alpha in ("0.0123456781", "0.0123456789"))
    assert one["state"] == [("alpha", "0.0123456781")]
    assert one["forest"] != other["forest"]


def test_warnings_are_notes_also_where_scores_were_made_before() -> None:
    frame = make_runs(3, 6, 3).to_frame()
    frame.loc[frame["benchmark"] == "b00", "loss"] = 1.0  # all equal
    ask = explorer(lt.Runs(frame, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark",
                           seed="seed"))  # fmt: skip
    with pytest.warns(lt.errors.DataWarning) as caught:
        lt.variant(lt.Runs(frame, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark",
                           seed="seed"), scale="minmax")  # fmt: skip
    for query in ("scale=minmax", "scale=minmax&without.benchmark=b01"):
        assert str(caught[0].message) in ask("answer", query)["notes"]


def test_what_is_copied_after_the_checks_has_their_reservation(runs: lt.Runs) -> None:
    ask, query = explorer(runs), urlencode({"formula": "loss ~ algorithm + (1 | benchmark)"})
    lacks = "The model lacks a term that the design calls for, so its p-values can be too small."
    assert lacks not in ask("answer", query)["exported"]
    checks = ask("checks", query)
    assert f"{lacks} Exploratory: by the model loss ~" in checks["exported"]
    assert checks["plan"] == ask("checks", "")["verdict"]
    ask = explorer(runs, plan={"formula": "loss ~ algorithm + (1 | benchmark)"})
    assert lacks in json.dumps(ask("checks", "alpha=0.01")["plan"])
    assert lacks in json.dumps(ask("answer", "alpha=0.02")["plan"])  # once it is known


def test_names_are_data(nasty_names: tuple[str, ...], table: Any, as_runs: Any) -> None:
    ask = explorer(as_runs(table(nasty_names)))
    answer = ask("answer", f"without.tool={quote(nasty_names[0])}")
    assert answer["changes"] == [f"without tool {nasty_names[0]}"]
    assert set(answer["levels"]) == set(nasty_names[1:])
    assert answer["state"] == [("without.tool", nasty_names[0])]


def test_columns_of_very_many_levels_have_no_boxes(monkeypatch: pytest.MonkeyPatch, runs: lt.Runs) -> None:
    monkeypatch.setattr(explore, "MOST_LEVELS", 5)
    benchmark, algorithm, *_ = explorer(runs)("answer", "")["controls"]["columns"]
    assert benchmark["more"] == "8 values: name them in the address, only.benchmark=VALUE."
    assert (len(benchmark["levels"]), len(algorithm["levels"])) == (0, 4)


def test_pairs_without_a_common_benchmark_are_no_numbers() -> None:
    frame = make_runs(4, 6, 3).to_frame()
    early, late = frame["benchmark"] < "b03", frame["algorithm"] < "C"
    frame = frame[early == late].reset_index(drop=True)
    table = lt.Runs(
        frame, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed"
    )
    answer = json.loads(json.dumps(explorer(table)("answer", ""), allow_nan=False))
    codes = np.array(answer["matrix"]["codes"])
    assert (codes == 3).sum() == 8
    assert sum(row["ends"][0] is None for row in answer["forest"]["rows"]) == 2
    assert any("no benchmark in common" in tip for *_, tip in answer["matrix"]["tips"])


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.0, 1.0], ["0.0", "0.5", "1.0"]),
        ([-0.011, 0.052], ["0.00", "0.02", "0.04"]),
        ([0.0, 43000.0], ["0", "20,000", "40,000"]),
        ([2.5, 2.5, None], ["2.500"]),
        ([None], ["0"]),
    ],
)
def test_ticks_are_round(values: list[float | None], texts: list[str]) -> None:
    assert [text for _, text in ticks_of(values)] == texts


@pytest.mark.parametrize("plan", [{"dispersion": "benchmark"}, {"formula": "log(loss) ~ algorithm + (1 | benchmark)"}])
def test_what_the_planned_model_allows_for_is_no_problem_of_the_table(plan: dict[str, Any]) -> None:
    frame = make_runs(3, 8, 3, shift=[2.0, 2.3, 2.6]).to_frame()
    frame["loss"] = np.exp(frame["loss"] / 3) * frame["benchmark"].map(lambda name: 10.0 ** (int(name[1:]) % 4))
    runs = lt.Runs(frame, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed")
    problems = explorer(runs, plan=plan)("checks", "")["problems_of_table"]
    analysis = lt.analyze(runs, **plan)
    assert [problem["title"] for problem in problems] == [outcome.check for outcome in analysis.check.to_fix]
    assert len(problems) < len(explorer(runs)("checks", "")["problems_of_table"])
