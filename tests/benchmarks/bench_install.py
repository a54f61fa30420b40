"""What a plain installation of a wheel takes: seconds of pip, megabytes by package, seconds of the import.

    python -m build && python tests/benchmarks/bench_install.py dist/lmemtest-*.whl [PYTHON ...]

Each PYTHON (by default this one) gets a fresh environment, which is removed again. Packages come from the registry, not
from pip's cache. Megabytes are those of the files of each package, of which "compiled" are the .pyc that pip writes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = """
import importlib.metadata as md, json, pathlib
found = {}
for dist in md.distributions():
    files = [pathlib.Path(dist.locate_file(file)) for file in dist.files or []]
    sizes = [(file.suffix == ".pyc", file.stat().st_size / 1e6) for file in files if file.is_file()]
    found[dist.name] = sum(mb for _, mb in sizes), sum(mb for compiled, mb in sizes if compiled)
print(json.dumps(found))
"""
AT_LEAST = 5.0  # megabytes of a package that has a line of its own


def spent(*command: str) -> tuple[float, float]:
    """Seconds on the clock and of the processor."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, used


def main() -> None:
    """Print a table for each Python."""
    wheel, *pythons = sys.argv[1:]
    for python in pythons or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([python, "-m", "venv", folder], check=True)
            own = str(Path(folder) / "bin" / "python")
            clock, work = spent(own, "-m", "pip", "install", "--quiet", "--no-cache-dir", wheel)
            done = subprocess.run([own, "-c", SIZES], check=True, capture_output=True, text=True)
            sizes = {name: mb for name, mb in json.loads(done.stdout).items() if name not in ("pip", "setuptools")}
            start = min(spent(own, "-c", "import lmemtest")[1] for _ in range(5))
            total, compiled = (sum(mb[i] for mb in sizes.values()) for i in range(2))
            version = subprocess.run([own, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        print(
            f"{version}: {clock:.0f} s ({work:.0f} s of the processor), {total:.0f} MB, {compiled:.0f} of it compiled;"
        )
        print(f"import {start * 1e3:.0f} ms of the processor\n\n| package | MB | compiled |\n|---|---|---|")
        for name, (mb, pyc) in sorted(sizes.items(), key=lambda item: -item[1][0]):
            if mb >= AT_LEAST:
                print(f"| {name} | {mb:.0f} | {pyc:.0f} |")


if __name__ == "__main__":
    main()
