"""Tuning curves of random-search scores with exact confidence bands; nothing of the mixed-model side.

================  ==============================================================================
order_statistics  exact probability that all order statistics keep to their intervals; the intervals
bands             simultaneous bands for a distribution function, calibrated without simulation
distribution      an empirical distribution with bounds, weights, curves and a band
goodness          whether scores follow a given law: the statistic behind the bands
curves            quantile and mean tuning curves with bands, for any real k > 0
estimators        U, V and W estimators of the expected best of k, and the bootstrap band to avoid
compare           evidence between two curves: labels, their false rates, cost units
winning           the chance that the best of k of one beats the best of k of another
importance        hyperparameters by what fixing them costs
evidence          labels from two bands; false_labels: how often they are wrong; costs: budgets in cost units
simulation        simulated coverage; kernel_density: laws to simulate from
quadratic         scores near the optimum of a quadratic: density, quantiles, curves
noisy_quadratic   the same with normal noise
parametric_fit    fits of these laws with intervals; parametric_bootstrap: whether to trust them
planner           how many scores for a curve up to k, and up to which k with n scores
================  ==============================================================================

The notation is one of maximising, as in the papers: T_k is the best of k scores, F its law for one score, and F^k for
k. The q-quantile of T_k is the smallest y with P(T_k <= y) >= q, in both directions and for every law of this package:
so the curve at k = 1 is the q-quantile of one score, and minimising y at q is maximising -y at 1 - q.
"""
