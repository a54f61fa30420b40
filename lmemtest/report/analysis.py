"""`analyze`: a table of runs -> everything that a report says about it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lmemtest.bench.benchmark.observed_advantages import interactions, observed_advantages, turns
from lmemtest.bench.checks.check import check_rules, of_reduced, refuse_unnamed
from lmemtest.bench.data.per_run import reduced
from lmemtest.bench.data.runs import Runs, as_runs, stated
from lmemtest.bench.modelling.adequacy import budget_use, missing_terms, sample_of
from lmemtest.bench.modelling.recommend import fitted, model_of
from lmemtest.bench.modelling.shared_seeds import with_shared_seeds
from lmemtest.bench.ranking.compare import beside
from lmemtest.bench.robustness.policies import by_usual_policies
from lmemtest.bench.robustness.variants import (
    checked_options,
    on_another_score,
    pairs_of,
    populations_compared,
    undeclared_families,
)
from lmemtest.bench.variation.variance_shares import variance_shares
from lmemtest.core.environment import versions
from lmemtest.core.hints import guided
from lmemtest.core.replicates import begun
from lmemtest.core.result import Answer, Result
from lmemtest.core.rounding import in_tie_order
from lmemtest.core.sanitize import one_line
from lmemtest.core.table import Text
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_callable, check_choice, check_columns, check_fraction
from lmemtest.errors import LmemtestError
from lmemtest.report.curves import call_of, curves_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from lmemtest.bench.benchmark.observed_advantages import Interaction
    from lmemtest.bench.checks.findings import RunsCheck
    from lmemtest.bench.looks.schedule import OneLook
    from lmemtest.bench.modelling.adequacy import Sample
    from lmemtest.bench.robustness.variants import Variants
    from lmemtest.lmm.diagnostics.advantages import AdvantageShape
    from lmemtest.lmm.diagnostics.diagnose import Diagnosis
    from lmemtest.lmm.formula import Bar
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.lmm.means.f_tests import FTest
    from lmemtest.lmm.model import LmmFit
    from lmemtest.report.document import Document
    from lmemtest.tuning.curves import TuningCurves

Progress = Callable[[str], None]

# Tables behind the p-values of the diagnostics: the fewest with which one can be 0.01; and their seed, which is stated.
_SIMULATED, DIAGNOSIS_RNG = 99, 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Analysis(Result):
    """A whole analysis of a table of runs; made by `analyze`.

    Attributes
    ----------
    runs : Runs
        What is compared: the runs, and of curves over a budget one score per run.
    table : Runs
        The table and its roles as they were given.
    check : RunsCheck
        What was found in the table; scales are those of what is compared.
    recommendation : Answer
        The model that the design calls for.
    own_formula : bool
        Whether the user chose the model that was fitted.
    fit : LmmFit
        Fitted by REML.
    joint : FTest or None
        Whether the algorithms differ at all, by the model; None with moderated standard errors (then the pairs say so)
        and with fewer than two estimable means.
    pairs : Comparisons
        All pairwise differences, intervals at 1 - `alpha`.
    decisions : Decisions
        The decisions at `alpha`, from which text, tables and figures are made.
    effects : Answer or None
        Deviations on each benchmark; None without a benchmark.
    call : str
        What was called.
    timings : dict of str to float
        Seconds per step.
    diagnosing : callable or None
        What makes the `diagnosis`, when somebody asks for it.
    trials : TuningCurves or None
        Tuning curves that the report shows beside the runs.
    interactions : dict of str to Interaction
        By metafeature at whose levels another algorithm is first: the test that the comparison depends on it.
    agreement : Variants or None
        The same pairs on another scale: of normalised runs by the raw score; of a score as measured by ranks within
        benchmarks, where few benchmarks decide its means or scales differ. None elsewhere. The model of ranks has fixed
        effects of up to 100 benchmarks and random ones of more.
    on_ranks : Decisions or None
        The decisions by these ranks.
    undeclared : Answer or None
        Groups of benchmarks by names or columns that have no role as families, with the test whether it matters.
    populations : Variants or None
        Of runs with families of benchmarks: the decisions for new families and for new benchmarks of these.
    sensitivity : Variants or None
        Of runs some of which failed: the decisions under several policies. None where none failed.
    look : OneLook or None
        Which of several looks this is; `alpha` is then its level.
    variants : {"none", "few", "all"}
        Which other analyses of the same runs the report compares itself with.
    """

    runs: Runs
    table: Runs
    check: RunsCheck
    recommendation: Answer
    own_formula: bool
    fit: LmmFit
    joint: FTest | None
    pairs: Comparisons
    decisions: Decisions
    effects: Answer | None
    call: str
    timings: dict[str, float] = field(repr=False)
    diagnosing: Callable[[], Diagnosis | None] | None = None
    trials: TuningCurves | None = None
    interactions: dict[str, Interaction] = field(default_factory=dict)
    agreement: Variants | None = None
    on_ranks: Decisions | None = None
    undeclared: Answer | None = None
    populations: Variants | None = None
    sensitivity: Variants | None = None
    look: OneLook | None = None
    variants: str = "few"

    # ------------------------------------------------------------------ what follows from the fields

    @property
    def formula(self) -> str:
        """The model that was fitted."""
        return self.fit.formula

    @property
    def alpha(self) -> float:
        """Chance of any false difference that the adjustment allows for."""
        return self.decisions.alpha

    @property
    def means(self) -> Estimates:
        """Marginal means of the algorithms, intervals at 1 - `alpha`."""
        return self.pairs.estimates

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Assumptions of the fit, checked; None where nothing could be."""
        return None if self.diagnosing is None else self.diagnosing()

    def __getstate__(self) -> dict[str, Any]:
        """With a diagnosis that can be made anywhere, where it is being made by another process."""
        made_here = None if self.diagnosing is None else partial(_diagnosed, self.fit)
        return {**self.__dict__, "diagnosing": made_here}

    @cached_property
    def components(self) -> pd.DataFrame:
        """Where the variation comes from."""
        return variance_shares(self.fit, self.runs)

    @cached_property
    def sample(self) -> Sample:
        """What the error of the comparisons takes as independent: benchmarks, or their instances."""
        return sample_of(self.fit, self.runs)

    @cached_property
    def missing(self) -> tuple[Bar, ...]:
        """Terms of the recommended model on which comparisons rest and that the fitted one lacks."""
        return missing_terms(self.fit, self.runs, self.recommendation.spec.bars)

    @cached_property
    def budgets(self) -> Answer:
        """At which budgets algorithms were scored, and what the model makes of it."""
        return budget_use(self.fit, self.runs)

    @cached_property
    def shape(self) -> AdvantageShape | None:
        """Whether advantages are about normal over the benchmarks; None without errors that count benchmarks."""
        return self.means.advantage_shape

    @cached_property
    def classical(self) -> Variants | None:
        """The decisions of classical tests of one score per benchmark; None where they do not apply."""
        if self.incomparable or self.fit.design.parsed.response_function is not None:
            return None
        try:
            return beside(self.pairs, self.decisions.levels, self.runs, self.alpha)
        except LmemtestError:  # too few blocks for them; the report stands without
            return None

    @property
    def these_only(self) -> bool:
        """Whether runs are the sample, and each of several benchmarks has means of its own."""
        return self.n_benchmarks > 1 and not self.own_formula and self.recommendation.population == "run"

    @property
    def claim(self) -> str:
        """What the decisions are about, where benchmarks have families: "new search spaces"; empty elsewhere."""
        families = self.runs.study.families and not self.own_formula and self.n_benchmarks > 1
        return str(self.recommendation.claim) if families else ""

    @property
    def incomparable(self) -> bool:
        """Whether the means are over unlike things that the model takes no notice of: no verdict follows from them."""
        if self.runs.budget is None:
            return False
        return bool(self.budgets.trials or (self.budgets.differ and self.budgets.role == "none"))

    @property
    def n_benchmarks(self) -> int:
        """Levels of the benchmark column; 1 without one."""
        return self.runs.study.count(self.runs.benchmark)

    @property
    def unit(self) -> str:
        """What the tables of observed means have rows for: benchmarks, or instances where there are metafeatures."""
        return "instance" if self.runs.metafeatures else "benchmark"

    @cached_property
    def versions(self) -> dict[str, str]:
        """Of lmemtest, Python and the packages behind the numbers."""
        return versions()

    @cached_property
    def comparable(self) -> tuple[str, ...]:
        """Algorithms whose differences are estimable, best first: a difference may be where the means are not."""
        levels = self.decisions.levels
        gaps: dict[str, dict[str, float]] = {level: {level: 0.0} for level in levels}
        table = self.pairs.columns
        for left, right, gap in zip(*(table[name].tolist() for name in ("left", "right", "estimate")), strict=True):
            if math.isfinite(gap):
                gaps[left][right], gaps[right][left] = -gap, gap
        first = max(levels, key=lambda level: len(gaps[level]))  # estimable differences make classes: the largest
        shared = tuple(level for level in levels if level in gaps[first])
        means = dict(zip(levels, self.decisions.means, strict=True))
        if all(math.isfinite(means[level]) for level in shared):
            return shared  # in the order of the tables, also where rounding decides
        sign = 1.0 if self.runs.direction == "minimize" else -1.0
        return tuple(in_tie_order(shared, lambda level: sign * gaps[first][level]))

    # ------------------------------------------------------------------ shown

    parts: ClassVar[Mapping[str, str]] = {"ranking": "ranking", "pairs": "_pairs"}

    @property
    def title(self) -> str:
        """What was compared."""
        from lmemtest.report.wording import measured

        return f"Algorithms by {measured(self)}"

    def _pairs(self) -> pd.DataFrame:
        return self.pairs.to_frame()

    def ranking(self) -> pd.DataFrame:
        """One row per algorithm, best first: the table of ``to_frame()``.

        Returns
        -------
        pandas.DataFrame
            ``algorithm``, ``emmean``, ``se``, ``df``, ``ci_low``, ``ci_high``, ``rank_low`` and ``rank_high`` (the set
            of ranks that the decisions leave open), ``letters`` of up to 12 algorithms (those that share one do not
            differ significantly) and ``worse_than_best`` (significantly worse than the first; missing where the two
            were not tested).
        """
        import pandas as pd

        means = self.means.to_frame().set_index(pd.Index(self.means.labels()))
        levels = [*self.comparable, *(level for level in self.decisions.levels if level not in self.comparable)]
        frame = means.loc[levels, ["emmean", "se", "df", "ci_low", "ci_high"]].reset_index(drop=True)
        frame.insert(0, "algorithm", levels)
        frame = frame.assign(**self.decisions.columns(levels))
        frame["worse_than_best"] = self.decisions.decision.loc[levels[0], levels].array
        return frame

    def headline(self) -> str:
        """The answer in a few sentences, as plain text."""
        return " ".join(self.sentences())

    @one_blas_thread()
    def document(self, *, progress: Progress | None = None) -> Document:
        """The report as a document, with its figures."""
        from lmemtest.report.sections import build_document

        return build_document(self, progress=progress or (lambda _: None))

    def summary(self) -> str:
        """The answer, the means and the differences as text."""
        from lmemtest.report.leaders import leaders, left_out

        names = leaders(self)
        # what decisions say of the best level would be a verdict where the means are over unlike things
        means = names.decisions.to_table().to_text() if self.incomparable else names.decisions.summary()
        parts = [one_line(self.headline()), means, names.pairs.to_table().to_text()]
        parts += [left_out(self)] if names is not self else []
        return Text("\n\n".join(parts), self._repr_html_())

    def sentences(self) -> tuple[str, ...]:
        """The answer, sentence by sentence, as plain text."""
        from lmemtest.report.document import plain
        from lmemtest.report.wording import headline

        return tuple(plain(sentence) for sentence in headline(self))

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw which algorithms differ: `lmemtest.plots.cd_diagram` of the decisions, with its options."""
        return self.decisions.plot(ax, **options)

    def explore(self) -> Any:
        """Variants of the analysis in a notebook: what is left out, scales, options and roles, each a control.

        The verdict of this analysis, which is the plan, stays in sight; every variant that is looked at is counted. At
        the command line the same page is ``lmemtest explore``.

        Returns
        -------
        anywidget.AnyWidget
            To be shown; ``state`` is what was chosen, as the query of an address, and can be set; ``answer`` is what
            the page shows, with the ``code`` that gives it again.

        Raises
        ------
        ArgumentError
            If anywidget is not installed.

        Notes
        -----
        Each variant keeps its level by itself. Who looks at many and reports the one that pleases does not: what is
        copied from a variant says that it is exploratory.
        """
        from lmemtest.report.serve import widget

        return widget(self)

    @guided
    def to_html(self, *, progress: Progress | None = None) -> str:
        """The report as one self-contained HTML page."""
        return self._as(".html", progress)

    @guided
    def to_text(self, *, progress: Progress | None = None) -> str:
        """The report as plain text, without its figures."""
        return self._as(".txt", progress)

    @guided
    def to_markdown(self, *, progress: Progress | None = None) -> str:
        """The report as markdown, without its figures."""
        return self._as(".md", progress)

    @guided
    def to_latex(self, *, progress: Progress | None = None) -> str:
        """The report as a LaTeX document, without its figures."""
        return self._as(".tex", progress)

    def _as(self, suffix: str, progress: Progress | None) -> str:
        from lmemtest.report.files import content_of

        return str(content_of(self, suffix, progress=progress))

    def contents(self) -> dict[str, Any]:
        """Roles, findings, model, answer, ranking, pairs and variance components."""
        roles, curve = self.table.roles().items(), self.runs.curve
        return {
            "call": self.call,
            "versions": self.versions,
            "roles": {name: list(value) if isinstance(value, tuple) else value for name, value in roles},
            "size": self.check.overview,
            "findings": self.check.to_frame("findings"),
            **({"curves": curve.how} if curve is not None else {}),
            "formula": self.formula,
            "alpha": self.alpha,
            "adjust": self.pairs.adjust,
            "ddf": self.means.ddf,
            "headline": list(self.sentences()),
            "ranking": self.to_frame(),
            "pairs": self.pairs.to_frame(),
            **({"population": self.recommendation.population, "claim": self.claim} if self.claim else {}),
            **({"populations": self.populations.decisions} if self.populations is not None else {}),
            **({"other_scale": self.agreement.decisions} if self.agreement is not None else {}),
            "variance_components": self.components.drop(columns="kind"),
        }

    def save(self, path: str | os.PathLike[str], *, progress: Progress | None = None, escape: bool = True) -> Path:
        """Write the report.

        Parameters
        ----------
        path : path
            Its folder must exist; a file that is there is replaced, by a complete one only. The suffix says what is
            written: the report as ``.html``; as ``.md`` or ``.tex``, with its figures in a folder beside it,
            ``report_files`` of ``report.tex``; without figures as ``.txt``; the ranking as ``.csv``; all numbers as
            ``.json``; the critical-difference diagram as ``.png``.
        progress : callable, optional
            Called with the name of each step.
        escape : bool
            For ``.csv``, as in `to_csv`.

        Returns
        -------
        Path
            Where it is now, absolute.

        Raises
        ------
        ArgumentError
            If the suffix is none of these, the path is a folder, or nothing can be written there.
        """
        from lmemtest.report.files import save

        return save(self, path, escape=escape, progress=progress)

    def save_paper(
        self, folder: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress | None = None
    ) -> tuple[Path, ...]:
        r"""Write the pieces of a paper: figures, tables, the results and methods in words, and what these cite.

        Parameters
        ----------
        folder : path
            It is made if it does not exist, in a folder that does.
        overwrite : bool
            Whether files of these names are replaced that were not written here, or were changed since.
        progress : callable, optional
            Called with the name of each step.

        Returns
        -------
        tuple of Path
            ``figure.pdf`` (the critical-difference diagram) and ``differences.pdf`` (differences from the best), 3.3
            inches wide; ``ranking.tex`` and ``pairs.tex``, booktabs tables with their captions; ``sentence.tex`` and
            ``sentence.txt``, the results; ``methods.tex``; ``references.bib``; ``article.tex``, which holds them all;
            ``supplement.tex``, two pages on model, means, pairs, checks and limits; and ``files.sha256``, by which
            files that were changed since are found. The same analysis gives the same bytes.

        Raises
        ------
        ArgumentError
            If the folder cannot be written, or has files that would be lost.
        DesignError
            If the means cannot be compared as they stand.

        Notes
        -----
        The files compile with pdfLaTeX and T1 fonts. Characters of names that it has no sign for, such as emoji, are
        written as their codes.

        Examples
        --------
        >>> import tempfile
        >>> import lmemtest as lt
        >>> analysis = lt.analyze(lt.datasets.load_hpo_runs().filter(budget=4, prior="good"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in analysis.save_paper(folder)][:3]
        ['figure.pdf', 'differences.pdf', 'ranking.tex']
        """
        from lmemtest.report.paper import save_paper

        return save_paper(self, folder, overwrite=overwrite, progress=progress)

    def _repr_html_(self) -> str:
        from lmemtest.report.leaders import leaders
        from lmemtest.report.render import render_fragment
        from lmemtest.report.wording import headline

        names = leaders(self)
        return render_fragment(headline(self), (names.decisions.to_table(), names.pairs.to_table()))


@guided
@one_blas_thread()
def analyze(
    runs: Runs | Any,
    *,
    formula: str | None = None,
    population: str | None = None,
    curves: str | None = None,
    dispersion: str | None = None,
    alpha: float = 0.05,
    adjust: str | None = None,
    vcov: str | None = None,
    ddf: str = "satterthwaite",
    looks: Sequence[int] | None = None,
    maximum: int | None = None,
    looked: int | str | os.PathLike[str] | None = None,
    spending: str | None = None,
    variants: str = "few",
    trials: Any = None,
    progress: Progress | None = None,
    **roles: Any,
) -> Analysis:
    """Compare the algorithms of a table of runs, from the checks to the decisions.

    Parameters
    ----------
    runs : Runs or dataframe
        The table and the roles of its columns; a dataframe with `roles`; or a wide one, with a column per algorithm and
        a row per benchmark, with its `direction`.
    formula : str, optional
        A model of one's own; by default the one of `recommend`. The algorithm must be in its fixed part.
    population : {"family", "benchmark", "run"}, optional
        What the claims are about, new families of benchmarks, new benchmarks of these, or exactly these benchmarks; see
        `recommend`. The report shows where the first two decide otherwise. Not together with a formula, which says so
        itself.
    curves : {"mean", "last", "best", "area", "model"}, optional
        What the scores of a run over its budgets count; by default "mean" for most tables, see `recommend`. A formula
        of one's own is fitted to the rows as they are.
    dispersion : str, optional
        Column whose levels have residual variances of their own, for instance the benchmark; see `fit_lmm`.
    alpha : float in (0, 1), default 0.05
        Significance level of the decisions, for the whole family of pairs.
    adjust : {"stepdown", "singlestep", "tukey", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none"}, optional
        Adjustment for the number of pairs; see `pairs`. By default "stepdown" with moderated standard errors, "tukey"
        with those of the model.
    vcov : {"moderated", "model"}, optional
        Standard errors of differences: a moderated one for each, the default where there are three benchmarks or more,
        or those of the model, which hold if all algorithms vary to the same degree between benchmarks.
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Degrees of freedom.
    looks : sequence of int, optional
        Numbers of benchmarks at all planned looks, that of these runs among them: `alpha` is then of the whole study,
        and decisions are made at what `spending` gives this look, for each pair as for `monitor`, which remembers the
        looks that were made.
    maximum : int, optional
        Instead of `looks`, where only the number of benchmarks at the end is planned: looks come when they like, and
        results may choose when. The level is that of a look after every number of benchmarks up to this one.
    looked : int or path, optional
        How often the table was looked at while it grew, this time included: without a plan the k-th look has
        1/(k (k + 1)) of `alpha`, shares that add up to one. Or the ledger of `monitor`, whose looks and spending give
        the level of this one.
    spending : {"obrien_fleming", "pocock"}, optional
        How planned looks spend `alpha`: next to nothing early (the default), or about evenly.
    variants : {"none", "few", "all"}, default "few"
        Other analyses of the same runs in the report: without each family, benchmark and algorithm and at other levels,
        where each takes milliseconds; "all" also where it takes longer, at each budget, and on other scales.
    trials : TuningCurves, Runs or dataframe, optional
        Random-search trials for a section on tuning curves: the result of `lmemtest.tuning.curves`, or a table with the
        score, benchmark and algorithm columns of the runs.
    progress : callable, optional
        Called with the name of each step.
    **roles
        score, direction, algorithm, benchmark, family, seed, budget, metafeatures, ignore, seed_shared, failed: what
        the columns of a dataframe mean, as in `Runs`.

    Returns
    -------
    Analysis
        ``summary()``, ``to_frame()``, ``to_html()``, ``save("report.html")``, and every result as an attribute.

    Raises
    ------
    ArgumentError
        If an argument breaks its rule, or columns that structure the rows have no role: then rows would count as
        independent that are not. The message has the call with the roles that they probably have.
    FormulaError
        If the formula lacks the algorithm, or models something else than the score.
    DataError
        If the scores are not complete; ``runs.check()`` says where.

    Notes
    -----
    The model is fitted by REML; the question whether the algorithms differ at all is answered by an F-test, the pairs
    by t-tests from the same fit. See the methods section of the report.

    Examples
    --------
    >>> import lmemtest as lt
    >>> analysis = lt.analyze(lt.datasets.load_hpo_runs().filter(budget=4, prior="good"))
    >>> analysis.to_frame()[["algorithm", "letters"]].head(2).to_dict("list")["algorithm"][0] in analysis.headline()
    True
    """
    options = {"formula": formula, "population": population, "curves": curves, "dispersion": dispersion,
               "alpha": alpha, "adjust": adjust, "vcov": vcov, "ddf": ddf}  # fmt: skip
    parsed = checked_options(options)
    check_callable(progress, "progress", "the name of each step")
    runs = as_runs(runs, roles, "analyze")
    if dispersion is not None:
        check_columns(dispersion, runs.columns, argument="dispersion")
    study_alpha, look = check_fraction(alpha, "alpha"), None
    plan = {"looks": looks, "maximum": maximum, "looked": looked, "spending": spending}
    if any(given is not None for given in plan.values()):
        from lmemtest.bench.looks.schedule import one_look

        look = one_look(runs, **plan, alpha=study_alpha, adjust=adjust)
    alpha = options["alpha"] = study_alpha if look is None else look.level
    seconds: dict[str, float] = {}
    step = partial(_timed, seconds, progress or (lambda _: None))

    with step("checking the table"):
        table = runs.with_named_algorithms()
        whole = table.study.without_properties
        check = check_rules(whole, parsed, dispersion=dispersion)
        refuse_unnamed(check.findings)
        per_run = table if parsed is not None else reduced(table, curves, dispersion)
        runs = whole if per_run is table else per_run.study.without_properties
        if per_run is not table:
            check = of_reduced(check, runs, dispersion)
    with step("choosing the model"):
        # monitor, whose ledger it is, has what seeds share in its errors without a test
        hold_seeds = look is not None and look.in_ledger
        recommendation = model_of(per_run, population, hold_seeds=hold_seeds)
    with step("fitting the model"):
        fit = fitted(recommendation, runs, parsed, dispersion)
        diagnosing = begun(partial(_diagnosed, fit), if_loaded=True)  # and waited for by who needs it
        check = with_shared_seeds(check, fit, runs, recommendation, alpha)
    with step("comparing the algorithms"):
        pairs = pairs_of(fit, runs, options)
        decisions = pairs.decisions(alpha=alpha, direction=runs.direction)
        options_of_ways = {**options, "hold_seeds": hold_seeds}
        same = {**options_of_ways, "dispersion": fit.dispersion}
        agreement, on_ranks = on_another_score(runs, check, pairs, recommendation, parsed, same)
        undeclared = populations = None
        if parsed is None:
            undeclared = undeclared_families(runs, pairs, options_of_ways)
        if parsed is None and fit.dispersion is None:
            populations = populations_compared(runs, recommendation, pairs, options_of_ways)
    sensitivity = None
    if runs.failures is not None and runs.failures.n_failed:
        with step("comparing policies for failed runs"):
            sensitivity = by_usual_policies(runs, alpha)
    with step("looking at each benchmark"):
        effects = observed_advantages(fit, runs, alpha=alpha)
        turning = effects is not None and any(turns(by_level) for by_level in effects.wins_by.values())
        function = fit.design.parsed.response_function
        dependence = interactions(runs, ddf=ddf, function=function, fit=fit) if turning else {}
    tuned = None
    if trials is not None:
        with step("estimating the tuning curves"):
            tuned = curves_of(trials, table)
    reduced_by = per_run.curve.how if per_run.curve is not None and per_run is not table else curves
    return Analysis(
        runs=runs,
        table=whole,
        check=check,
        recommendation=recommendation,
        own_formula=parsed is not None,
        fit=fit,
        joint=pairs.estimates.all_equal(),
        pairs=pairs,
        decisions=decisions,
        effects=effects,
        call=_call(
            table,
            {
                **options,
                "alpha": study_alpha,
                "looks": None if looks is None or look is None else look.sizes,
                "maximum": maximum,
                "spending": spending,
                "looked": str(looked) if isinstance(looked, os.PathLike) else looked,
                "curves": reduced_by,
            },
            tuned,
        ),
        timings=seconds,
        diagnosing=diagnosing,
        trials=tuned,
        interactions=dependence,
        agreement=agreement,
        on_ranks=on_ranks,
        undeclared=undeclared,
        populations=populations,
        sensitivity=sensitivity,
        look=look,
        variants=check_choice(variants, "variants", ("none", "few", "all")),
    )


@contextmanager
def _timed(seconds: dict[str, float], progress: Progress, step: str) -> Iterator[None]:
    """A step, announced as it starts, and its seconds."""
    progress(step)
    start = time.perf_counter()
    yield
    seconds[step] = time.perf_counter() - start


def _diagnosed(fit: LmmFit) -> Diagnosis | None:
    """The checks that need no refits; a report is not lost because one of them fails."""
    try:
        return fit.diagnose(influence=False, n_draws=_SIMULATED, rng=DIAGNOSIS_RNG)
    except LmemtestError:
        return None


def _call(runs: Runs, options: dict[str, Any], curves: TuningCurves | None) -> str:
    roles = ", ".join(f"{name}={value!r}" for name, value in stated(runs.roles()).items())
    arguments = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    arguments += [f"trials={call_of(curves)}"] if curves is not None else []
    return f"lmemtest.analyze(lmemtest.Runs(table, {roles}), {', '.join(arguments)})"
