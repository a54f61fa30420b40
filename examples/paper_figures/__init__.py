"""What the figures of two papers are made of: functions that give tables, and one figure for each of them.

    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3
    Lourie, Cho & He (2024), Show your work with confidence, doi:10.18653/v1/2024.naacl-long.189

The first: estimators, estimator_quality, splits; decision_rules, sample_size, published_improvements; binomial_noise,
source_normality. The second: coverage.
"""
