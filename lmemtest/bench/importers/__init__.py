"""Runs from what other tools write: one function per tool, each of which says in `notes` what it took for what."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(
    __name__,
    submod_attrs={
        "amlb_results": ["amlb"],
        "carps_logs": ["carps"],
        "evaluation_samples": ["inspect_ai", "lm_eval"],
        "exported_runs": ["mlflow", "wandb"],
        "hpob_curves": ["hpob"],
        "optuna_studies": ["optuna"],
        "score_arrays": ["rliable"],
        "sklearn_results": ["sklearn"],
        "wide_tables": ["wide"],
    },
)
