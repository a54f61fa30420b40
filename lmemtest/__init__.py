"""Mixed-effects significance testing for machine-learning and hyperparameter-optimisation benchmarks."""

import lazy_loader as _lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = _lazy.attach(
    __name__,
    submodules=["errors", "plots"],
    submod_attrs={
        "data": ["datasets"],
        "data.readers": ["read_runs"],
        "data.runs": ["Runs"],
        "inference.contrasts": ["contrast", "pairs"],
        "inference.glrt": ["glrt"],
        "inference.grid": ["emmeans"],
        "inference.separation": ["separation"],
        "model": ["fit_lmm"],
        "recipes.recommended": ["recommend"],
        "report.analysis": ["analyze"],
    },
)
