"""What numbers depend on beside the table: versions, the linear algebra library and its kernel, processors."""

from __future__ import annotations

import importlib
import os
import platform
import re
from collections.abc import Iterable
from typing import Any

from lmemtest.errors import ArgumentError

BEHIND_NUMBERS = ("numpy", "scipy", "pandas", "formulaic", "narwhals", "matplotlib")
ABSENT = "not installed"


def versions(packages: Iterable[str] = BEHIND_NUMBERS) -> dict[str, str]:
    """Versions of lmemtest, Python and packages, by name; "not installed" of a package that is absent.

    Examples
    --------
    >>> import lmemtest
    >>> found = versions(["numpy", "no-such-package"])
    >>> list(found), found["lmemtest"] == lmemtest.__version__, found["no-such-package"]
    (['lmemtest', 'Python', 'numpy', 'no-such-package'], True, 'not installed')
    """
    import importlib.metadata

    found = {"lmemtest": str(importlib.import_module("lmemtest").__version__), "Python": platform.python_version()}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = ABSENT
    return found


def environment() -> dict[str, str]:
    """What a report of a bug should say: versions of all packages that are used, platform, BLAS, processors.

    Returns
    -------
    dict of str to str
        `versions` of what `lmemtest` requires and of what its extras bring, then "platform", "BLAS" (library, version,
        kernel, threads; one entry for each library that is loaded) and "processors" (that this process may use, of
        all).
    """
    from lmemtest.core.threads import blas_libraries

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        **versions(_named_by_us()),
        "platform": f"{platform.platform()}, {platform.machine()}",
        "BLAS": "; ".join(blas_libraries()) or "not recognised",
        "processors": f"{usable} of {os.cpu_count()}",
    }


def extra_package(module: str, *, extra: str, purpose: str, otherwise: str) -> Any:
    """A package that comes with an extra, or an error that names the extra and the way without.

    Examples
    --------
    >>> extra_package("json", extra="parquet", purpose="read a.parquet", otherwise="").loads("1")
    1
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ArgumentError(f"To {purpose}, {module} is needed: pip install 'lmemtest[{extra}]'. {otherwise}") from None


def _named_by_us() -> list[str]:
    """Packages that our metadata name, required ones first; without those of tests, developers and old Pythons."""
    import importlib.metadata

    try:
        requirements = importlib.metadata.requires("lmemtest") or []
    except importlib.metadata.PackageNotFoundError:  # run from a folder
        return list(BEHIND_NUMBERS)
    elsewhere = re.compile(r"""extra == ['"](test|docs|notebooks|dev|data)['"]|python_version""")
    ours = [requirement for requirement in requirements if not elsewhere.search(requirement)]
    names = [re.split(r"[^\w.-]", requirement)[0] for requirement in ours]
    return [name for name in dict.fromkeys(names) if name != "lmemtest"]
