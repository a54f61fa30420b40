"""Studies of runs: the table (`data`, `importers`), which model (`modelling`), and a folder a question."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__, submodules=["importers"])
