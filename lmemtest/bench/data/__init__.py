"""From any dataframe to cells: roles and checks (`runs`), compression (`cells`), files (`readers`), data sets."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__, submodules=["datasets"])
