"""Runs from what other tools write: one function per tool, each of which says in `notes` what it took for what."""

import lazy_loader as _lazy

from lmemtest.bench.importers.register import IMPORTERS as _IMPORTERS

__getattr__, __dir__, __all__ = _lazy.attach(
    __name__,
    submod_attrs={
        row.file: [name for name, other in _IMPORTERS.items() if other.file == row.file] for row in _IMPORTERS.values()
    },
)
