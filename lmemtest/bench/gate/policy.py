r"""A policy: what a new version has to show, written down before its scores are seen.

It is TOML, or a mapping of the same form. A section ``[tier.metric]`` has a ``margin`` (a number in the unit of the
score, or a percentage of the old version's mean), or a ``bar`` with the ``share`` of the runs that have to reach it, or
both, which are two checks. The tiers say what a check decides:

    critical      the gate fails if one of them fails; it passes only if all of them pass,
    supporting    it fails if m of them fail, m = ``supporting_failures``; of S it passes only if S - m + 1 pass,
    advisory      decides nothing.

*Level.* "Some critical check does not hold, or m supporting ones do not" is to pass with probability alpha at most.
Critical checks are tested at alpha each, since all have to pass (Berger 1982). Where k >= m of the S supporting checks
do not hold, and S - m + 1 or more pass, k - m + 1 or more of these k pass falsely; tested at alpha / m each, that has
probability (k alpha / m) / (k - m + 1) <= alpha at most by Markov's inequality, whatever their correlation: the partial
conjunction test of Benjamini & Heller (2008) with Bonferroni's p-value. Failures are Holm-adjusted over all checks that
can block, so that any of them is false with probability alpha at most, and the failure of the gate with it.

References
----------
Berger (1982), doi:10.1080/00401706.1982.10487790; Benjamini & Heller (2008), Screening for partial conjunction
hypotheses, Biometrics 64(4), doi:10.1111/j.1541-0420.2007.00984.x; Holm (1979), Scand. J. Stat. 6, 65-70
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmemtest.bench.gate.difference import LIKE_THESE, POPULATIONS
from lmemtest.bench.gate.metric import margin_of
from lmemtest.core.caller import named
from lmemtest.core.rounding import at_most, below
from lmemtest.core.validate import check_choice, check_direction, check_fraction, check_names, check_number
from lmemtest.core.words import format_level, joined, listed, suggest
from lmemtest.errors import ArgumentError, DataError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pandas as pd

CRITICAL, SUPPORTING, ADVISORY = "critical", "supporting", "advisory"
TIERS = (CRITICAL, SUPPORTING, ADVISORY)
ALLOWED = ("missing", "identical")
PASS, FAIL, INSUFFICIENT = "pass", "fail", "insufficient"
ERROR = "error"
ABSENT = (INSUFFICIENT, ERROR)  # what a missing required task leads to
SETTINGS = ("alpha", "power", "tasks", "max_broken", "allow")  # keys that are arguments of `gate`, too
KEYS = (*SETTINGS, "direction", "required", "missing", "supporting_failures", *TIERS)
KEYS_OF_CHECK = ("margin", "bar", "share")
KEY = "the key {!r}".format  # what a key is called in messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of a gate.

    ``checks`` have a tier, a metric, and a margin (its size, and whether it is relative) or a bar and a share; none
    where each metric has the margin of an argument. ``where`` names the file in messages; empty without one.
    """

    where: str = ""
    checks: tuple[dict[str, Any], ...] = ()
    alpha: float
    power: float
    tasks: str
    max_broken: float | None
    allow: tuple[str, ...]
    direction: Any = None
    required: tuple[str, ...] = ()
    missing: str = INSUFFICIENT
    supporting_failures: int = 1

    def level_of(self, tier: str) -> float:
        """The level at which a check of a tier passes."""
        return self.alpha / (self.supporting_failures if tier == SUPPORTING else 1)

    def without_scores(self, places: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
        """The required tasks that some metric has no scores of both versions for; an error where that is the rule."""
        tasks = [set(map(format_level, place["task"])) for place in places.values()]
        absent = tuple(task for task in self.required if not all(task in of_metric for of_metric in tasks))
        if absent and self.missing == ERROR:
            hints = "".join(suggest(task, set[str]().union(*tasks)) for task in absent[:1])
            raise DataError(
                f"{self.where} requires {joined(absent)}, without scores of both versions.{hints} Run what is missing, "
                f"or write missing = {INSUFFICIENT!r}."
            )
        return absent


def settings_of(
    *,
    alpha: Any = 0.05,
    power: Any = 0.8,
    tasks: Any = LIKE_THESE,
    max_broken: Any = None,
    allow: Any = (),
    called: Callable[[str], str] = str,
) -> dict[str, Any]:
    """The settings of a gate, checked; `called` says what each is called in messages."""
    check_choice(tasks, called("tasks"), POPULATIONS)
    if check_fraction(alpha, called("alpha")) >= 0.5:
        raise ArgumentError(f"{named(called('alpha'))} must be below 0.5 for one-sided tests, got {alpha!r}.")
    if not below(alpha, check_fraction(power, called("power"))):
        above = f"{named(called('alpha'))} = {alpha:g}"
        raise ArgumentError(f"{named(called('power'))} must be above {above}, got {power!r}.")
    if max_broken is not None:
        max_broken = check_fraction(max_broken, called("max_broken"))
        if tasks != LIKE_THESE:
            raise ArgumentError(
                f"{named(called('max_broken'))} is about tasks that were not run, so it needs {named(called('tasks'))} "
                f"= {LIKE_THESE!r}, got {tasks!r}. Of these tasks the answer has every loss."
            )
    allowed = check_names(allow, named(called("allow")))
    for name in allowed:
        check_choice(name, called("allow"), ALLOWED)
    return {"alpha": float(alpha), "power": float(power), "tasks": tasks, "max_broken": max_broken, "allow": allowed}


def read_policy(policy: Any) -> Policy:
    """The policy of a TOML file or a mapping; an `ArgumentError` names the file, the key, the rule and the value.

    >>> read_policy({"critical": {"accuracy": {"margin": "2 %"}}}).checks
    ({'tier': 'critical', 'metric': 'accuracy', 'margin': (0.02, True)},)
    """
    where, content = ("policy", policy) if isinstance(policy, Mapping) else _loaded(policy)
    try:
        return _checked(where, content)
    except ArgumentError as error:
        raise ArgumentError(f"{where}: {error}") from None


def _loaded(path: Any) -> tuple[str, dict[str, Any]]:
    """The name and the content of a file; nothing in it is evaluated."""
    argument = named("policy")
    if not isinstance(path, (str, os.PathLike)) or isinstance(path, bytes):
        raise ArgumentError(f"{argument} must be the path of a TOML file such as 'gate.toml', got {path!r}.")
    try:
        text = Path(os.path.expanduser(path)).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ArgumentError(
            f"{argument} must be the path of a TOML file that can be read, got {str(path)!r:.100}: {reason}."
        ) from None
    where = Path(path).name
    try:
        return where, tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ArgumentError(
            f"{where} is not written in TOML: {error}. Texts need quotation marks: margin = '2 %'."
        ) from None


def _checked(where: str, content: Mapping[str, Any]) -> Policy:
    _refuse_unknown(content, KEYS, "Keys")
    checks: list[dict[str, Any]] = []
    for tier in TIERS:
        sections = content.get(tier, {})
        if not isinstance(sections, Mapping):
            raise ArgumentError(
                f"{KEY(tier)} must have a section for each metric, [{tier}.accuracy], got {sections!r}."
            )
        for metric, section in sections.items():
            checks += _checks_of(tier, metric, section)
    of_tier = [check["tier"] for check in checks]
    if not {CRITICAL, SUPPORTING} & set(of_tier):
        raise ArgumentError(
            "there must be a critical or a supporting check, because nothing else can block. Write a section such as "
            "[critical.accuracy] with margin = '2 %'."
        )
    metrics = list(dict.fromkeys(check["metric"] for check in checks))
    direction = content.get("direction")
    if isinstance(direction, Mapping):
        _refuse_unknown(direction, metrics, "Metrics with a check", f"{KEY('direction')}: ")
    for value in () if direction is None else direction.values() if isinstance(direction, Mapping) else (direction,):
        check_direction(value, KEY("direction"))
    required = content.get("required", [])
    if not isinstance(required, list) or not all(type(task) in (str, int) for task in required):
        raise ArgumentError(f"{KEY('required')} must be a list of tasks, such as ['task1', 'task2'], got {required!r}.")
    return Policy(
        where=where,
        checks=tuple(checks),
        **settings_of(**{key: content[key] for key in SETTINGS if key in content}, called=KEY),
        direction=direction,
        required=tuple(map(format_level, required)),
        missing=check_choice(content.get("missing", INSUFFICIENT), KEY("missing"), ABSENT),
        supporting_failures=_failures(content.get("supporting_failures"), of_tier.count(SUPPORTING)),
    )


def _checks_of(tier: str, metric: str, section: Any) -> list[dict[str, Any]]:
    """The checks of a section."""
    title = f"[{tier}.{metric}]" if metric.isidentifier() else f"[{tier}.{metric!r}]"
    if not isinstance(section, Mapping):
        raise ArgumentError(f"{title} must be a section with margin, or with bar and share, got {section!r}.")
    _refuse_unknown(section, KEYS_OF_CHECK, "Keys", f"{title}: ")
    check: dict[str, Any] = {"tier": tier, "metric": metric}
    out = []
    if "margin" in section:
        out.append(check | {"margin": margin_of(metric, section["margin"], f"{title} {KEY('margin')}")})
    if "bar" in section and "share" in section:
        bar = check_number(section["bar"], f"{title} {KEY('bar')}", meaning="the score that a run has to reach")
        out.append(check | {"bar": bar, "share": _share(section["share"], f"{title} {KEY('share')}")})
    elif "bar" in section or "share" in section:
        one, other = ("bar", "share") if "bar" in section else ("share", "bar")
        raise ArgumentError(
            f"{title} has {one} = {section[one]!r} without {other}. A bar is the score that a run has to reach, the "
            "share is that of the runs that have to: bar = 0.5 and share = '90 %'."
        )
    if not out:
        raise ArgumentError(f"{title} is empty. Write margin = '2 %', or bar = 0.5 and share = '90 %'.")
    return out


def _share(value: Any, called: str) -> float:
    """A share, which may be a percentage."""
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            return check_fraction(float(value.strip().removesuffix("%")) / 100.0, called)
        except ValueError:  # no number, or none that is a share
            pass
    if isinstance(value, str):
        raise ArgumentError(
            f"{called} must be a number between 0 and 1 or such a percentage, 0.9 or '90 %', got {value!r}."
        )
    return check_fraction(value, called)


def _failures(given: Any, n_supporting: int) -> int:
    """How many supporting checks have to fail to block; a share counts from the first whole number that reaches it.

    >>> _failures(2, 4), _failures("50 %", 3), _failures(0.3, 10), _failures(None, 0)
    (2, 2, 3, 1)
    """
    called = KEY("supporting_failures")
    if given is None and not n_supporting:
        return 1
    if given is None or not n_supporting:
        raise ArgumentError(
            f"{called} says how many supporting checks have to fail to block, as a number or a share such as '50 %'; "
            + (f"it is missing, and there are {n_supporting}." if given is None else f"there is none, got {given!r}.")
        )
    if isinstance(given, str) or (isinstance(given, float) and given < 1.0):
        share = _share(given, called)
        return next(count for count in range(1, n_supporting + 1) if at_most(share * n_supporting, count))
    if type(given) is not int or not 1 <= given <= n_supporting:
        raise ArgumentError(
            f"{called} must be a whole number from 1 to {n_supporting}, the number of supporting checks, or a share "
            f"such as '50 %', got {given!r}."
        )
    return given


def _refuse_unknown(content: Mapping[str, Any], names: Collection[str], what: str, place: str = "") -> None:
    for name in content:
        if name not in names:
            raise ArgumentError(
                f"{place}{KEY(name)} is unknown. {what}: {listed(names, len(names))}.{suggest(str(name), names)}"
            )
