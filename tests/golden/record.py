"""The golden record: what every public call gives, saved before the code is moved, and compared after each move.

    python tests/golden/record.py compare [--only PART[:WORDS]] [--words] [--all]    (make golden)
    python tests/golden/record.py save [--only PART[:WORDS]]                         (make golden-save)

Its parts, each of units of its own:

- thin: every call of test_thin_designs.py on every design there (`thin:horizons`, `thin:copies`);
- calls: the good call of every public function in test_bad_arguments.py, and of its methods;
- kernels: the designs of tests/kernels/record.py;
- pages: README and docs, each variable after each block that binds it, and what is printed (`pages:docs/horizons.md`);
- reference: the package's own numbers on the cases of tests/reference (`reference:emm`), see cases.py.

Numbers have 12 digits and are equal to 1e-10, on other kernels to 1e-7 (comparison.py says how); columns, attributes,
classes and units that are renamed on purpose are in renames.json, which `save` of the whole record empties. A number,
a class of error, a formula or a column that is gone is a failure; words are not, and --words shows them. Calls that
draw without a seed get seed 0 here.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import io
import json
import lzma
import os
import re
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import comparison
import numpy as np
import suite
from values import described, is_recorded

HERE = Path(__file__).parent
RECORD, RENAMES = HERE / "record.json.xz", HERE / "renames.json"
NO_RENAMES: dict[str, dict[str, str]] = {"names": {}, "scoped": {}, "units": {}, "errors": {}}
MACHINE = "(machine)"  # a key of the record: the kernels of the linear algebra that it was made with
PARTS = ("reference", "pages", "kernels", "calls", "thin")
Columns = dict[str, list[Any]]
Entries = list[tuple[str, Columns]]


# ------------------------------------------------------------------------------------------------------- the parts


def units_of(part: str) -> list[str]:
    if part == "thin":
        thin = suite.module("test_thin_designs.py")
        return [f"{recipe}, {design}" for recipe in thin.RECIPES for design in thin.DESIGNS]
    if part == "calls":
        calls = suite.module("test_bad_arguments.py")
        return [*calls.calls(), *calls.methods()]
    if part == "kernels":
        return list(suite.module("tests/kernels/record.py").designs())
    if part == "pages":
        docs = suite.module("test_docs.py")
        return [docs.page_id(path) for path in docs.PAGES]
    import cases

    return list(cases.CASES)


def entries_of(part: str, unit: str) -> Entries:
    if part == "thin":
        thin = suite.module("test_thin_designs.py")
        recipe, _, design = unit.partition(", ")
        call, sizes, _ = thin.RECIPES[recipe]
        return [("", recorded(lambda: call(thin.runs_of(design, **sizes))))]
    if part == "calls":
        calls = suite.module("test_bad_arguments.py")
        function, options = {**calls.calls(), **calls.methods()}[unit]
        return [("", recorded(lambda: function(**options)))]
    if part == "kernels":
        return [("", recorded(suite.module("tests/kernels/record.py").designs()[unit]))]
    if part == "pages":
        return page(unit)
    import cases

    out: Entries = []
    try:
        for item, value in cases.CASES[unit]():
            out.append((item, described(value)))
    except Exception as error:
        out.append(("(stopped)", failure(error)))
    return out


def recorded(call: Callable[[], Any]) -> Columns:
    """The columns of what a call gives, or its error; and what it warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            columns = described(call())
        except Exception as error:
            columns = failure(error)
    if caught:
        columns["(warnings)"] = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return columns


def failure(error: Exception) -> Columns:
    return {"(error)": [type(error).__name__], "(message)": [str(error)]}


def page(name: str) -> Entries:
    """Every variable that a block binds to a number, a table or a result, with its text; and what blocks print."""
    docs, out, namespace = suite.module("test_docs.py"), [], {}
    before: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder) if sys.version_info >= (3, 11) else _at(folder),
    ):
        try:
            for _, printed in docs.run_page(suite.ROOT / name, namespace):
                for variable, value in list(namespace.items()):
                    if variable.startswith("__") or before.get(variable, _Nothing) is value or not is_recorded(value):
                        continue
                    columns = described(value)
                    columns["(text)"] = [str(value)[:20_000]]
                    out.append((variable, columns))
                before = dict(namespace)
                if printed:
                    out.append(("(printed)", {"(printed)": [printed]}))
        except Exception as error:
            out.append(("(stopped)", failure(error)))
    return out


class _Nothing:
    """Stands for a variable that is not there."""


@contextlib.contextmanager
def _at(folder: str) -> Iterator[None]:
    """contextlib.chdir, which Python 3.10 lacks."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


# --------------------------------------------------------------------------------------------------------- running


def prepare() -> None:
    """Set up a process: one thread for linear algebra, figures without a screen, and a seed for every generator."""
    import matplotlib

    matplotlib.use("Agg")
    fresh = np.random.default_rng
    np.random.default_rng = lambda seed=None: fresh(0 if seed is None else seed)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(suite.ROOT), os.environ.get("PYTHONPATH")]))


def run(part: str, unit: str) -> tuple[str, Entries, float]:
    start = time.process_time()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        entries = entries_of(part, unit)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    return f"{part}:{unit}", entries, time.process_time() - start


def chosen(only: list[str]) -> list[tuple[str, str]]:
    """Parts and units that `--only` names; all without it."""
    found = []
    for part in PARTS:
        words = [text.partition(":")[2] for text in only if text.partition(":")[0] == part]
        if not only or words:
            units = units_of(part)
            found += [(part, u) for u in units if not only or any(w in u or fnmatch.fnmatch(u, w) for w in words)]
    if not found:
        raise SystemExit(f"--only names nothing; parts are {', '.join(PARTS)}, as in --only thin:horizons")
    return found


def run_all(only: list[str], workers: int, *, times: bool) -> dict[str, Entries]:
    out, spent = {}, Counter()
    todo = chosen(only)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=prepare) as pool:
        for done in as_completed([pool.submit(run, part, unit) for part, unit in todo]):
            key, entries, seconds = done.result()
            out[key], spent[key] = entries, seconds
            if sys.stderr.isatty():
                print(f"\r{len(out)} of {len(todo)}", end="", file=sys.stderr, flush=True)
    for key, seconds in spent.most_common(25) if times else ():
        print(f"{seconds:7.1f} s  {key}")
    kernels = sorted(set(suite.module("tests/kernels/record.py").machine()["kernels"]))
    return {MACHINE: [(", ".join(kernels), {})]} | {f"{part}:{unit}": out[f"{part}:{unit}"] for part, unit in todo}


def read(path: Path) -> dict[str, Entries]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def write(path: Path, record: dict[str, Entries]) -> None:
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    with lzma.open(path, "wt", encoding="utf-8", preset=9 | lzma.PRESET_EXTREME) as file:
        file.write(text)


# ---------------------------------------------------------------------------------------------------------- report


def report(old: dict[str, Entries], new: dict[str, Entries], *, words: bool, everything: bool) -> int:
    """Print the differences by call; the number of those that are failures."""
    names = comparison.Names(json.loads(RENAMES.read_text(encoding="utf-8")))
    counts: Counter[str] = Counter()
    groups: dict[str, list[tuple[str, comparison.Difference]]] = defaultdict(list)
    for key, entries in old.items():
        now = names.unit(key)
        part, _, unit = key.partition(":")
        call, _, design = unit.partition(", ") if part == "thin" else (unit, "", "")
        if now not in new:
            counts["gone"] += 1
            groups[f"{part}:{call}"].append((design, comparison.Difference("gone", "", f"no unit {now!r} any more")))
            continue
        found, moved = comparison.compare_entries(entries, new[now], names, is_page=part == "pages")
        counts["moved"] += moved
        for difference in found:
            counts[difference.kind] += 1
            if words or difference.kind not in comparison.WORDS:
                groups[f"{part}:{call}"].append((design, difference))
    for call, lines in groups.items():
        print(f"\n{call}")
        alike: dict[tuple[str, str], list[tuple[str, comparison.Difference]]] = defaultdict(list)
        for design, d in lines:
            # one line for a column that differs in many designs or levels
            alike[d.kind, d.where if everything else re.sub(r"\b\d+\b", "*", d.where)].append((design, d))
        shown = list(alike.values()) if everything else list(alike.values())[:8]
        for same in shown:
            design, d = same[0]
            times = f" (and {len(same) - 1} more like it)" if len(same) > 1 and not everything else ""
            for design, d in same if everything else same[:1]:
                print("  " + ": ".join(filter(None, [design, d.where, f"[{d.kind}] {d.text}"])) + times)
        if len(alike) > len(shown):
            print(f"  ... and {len(alike) - len(shown)} more columns (--all)")
    failures = sum(counts[kind] for kind in comparison.FAILS)
    kinds = (*comparison.FAILS, *comparison.NOTED, "moved", *comparison.WORDS)
    print(f"\n{len(old)} units compared; " + ", ".join(f"{kind} {counts[kind]}" for kind in kinds))
    print(f"{failures} failures" if failures else "the numbers are the same")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description="Save or compare the golden record.")
    parser.add_argument("action", choices=("save", "compare"))
    parser.add_argument("--only", action="append", default=[], metavar="PART[:WORDS]", help="as in thin:horizons")
    parser.add_argument("--words", action="store_true", help="list changed words, too")
    parser.add_argument("--all", action="store_true", help="list every difference")
    parser.add_argument("--times", action="store_true", help="print the units that took longest")
    parser.add_argument("--relative", type=float, help="1e-10 on the kernel of the record, 1e-7 on others")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--record", type=Path, default=RECORD, help="another file than record.json.xz")
    options = parser.parse_args()
    new = run_all(options.only, options.workers, times=options.times)
    if options.action == "save":
        kept = read(options.record) if options.only and options.record.exists() else {}
        write(options.record, {**kept, **new})
        if not kept and options.record == RECORD:  # all names are those of today
            RENAMES.write_text(json.dumps(NO_RENAMES, indent=2) + "\n", encoding="utf-8")
        print(f"{options.record}: {len(new) - 1} units, {options.record.stat().st_size / 1e6:.2f} MB")
        return
    # through JSON, so that both sides are of one kind
    new = json.loads(json.dumps(new))
    names = comparison.Names(json.loads(RENAMES.read_text(encoding="utf-8")))
    old = read(options.record)
    made, here = old.pop(MACHINE)[0][0], new.pop(MACHINE)[0][0]
    comparison.RELATIVE = options.relative or (
        comparison.RELATIVE if made == here else comparison.RELATIVE_OTHER_KERNEL
    )
    print(f"record made on {made}, compared on {here}: numbers equal to {comparison.RELATIVE:g}")
    if options.only:
        old = {key: entries for key, entries in old.items() if names.unit(key) in new}
    sys.exit(1 if report(old, new, words=options.words, everything=options.all) else 0)


if __name__ == "__main__":
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # before the processes of the pool load numpy
    main()
