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
        "inference.best": ["versus_best"],
        "inference.cluster_robust": ["cluster_robust"],
        "inference.contrasts": ["contrast", "pairs"],
        "inference.control": ["compare_to"],
        "inference.diagnostics.diagnosis": ["diagnose"],
        "inference.diagnostics.influence": ["influence"],
        "inference.glrt": ["glrt"],
        "inference.grid": ["emmeans"],
        "inference.joint": ["joint_tests"],
        "inference.margins": ["equivalence", "noninferiority"],
        "inference.permutation": ["permutation_test"],
        "inference.planned_components": ["VarianceComponents", "components_of"],
        "inference.power": ["power"],
        "inference.profile": ["profile"],
        "inference.random_effects": ["random_effects"],
        "inference.resampling": ["bootstrap"],
        "inference.separation": ["separation"],
        "model": ["fit_lmm"],
        "recipes.calibration": ["audit"],
        "recipes.recommended": ["recommend"],
        "report.analysis": ["analyze"],
        "tuning.bands": ["cdf_band"],
        "tuning.by_benchmark": ["tuning_curves"],
        "tuning.compare": ["compare_curves"],
        "tuning.curves": ["tuning_curve"],
        "tuning.distribution": ["EmpiricalDistribution"],
        "tuning.estimators": ["expected_best"],
        "tuning.importance": ["tuning_risk"],
        "tuning.noisy_quadratic": ["NoisyQuadraticDistribution"],
        "tuning.parametric_bootstrap": ["bootstrap_fit"],
        "tuning.parametric_fit": ["fit_noisy_quadratic", "fit_quadratic"],
        "tuning.planner": ["plan_tuning"],
        "tuning.quadratic": ["QuadraticDistribution"],
        "tuning.winning": ["best_of"],
    },
)
