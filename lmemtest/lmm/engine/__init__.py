"""The mixed-model engine: arrays in, arrays out, numpy and scipy only.

The model is ``y = X b + sum_j Z_j u_j + e`` with ``u_j ~ N(0, s2 Sigma_j)`` per level and
``e ~ N(0, s2 / w)``; ``Sigma_j = L_j L_j'`` and theta stacks the lower triangles of the ``L_j``.

=============  =================================================================================
blocks         terms, and the blocks of columns that are eliminated together
structure      which blocks in which order: independent parts of the table, chosen by counted cost
products       terms and cells -> blocked cross-products of [Z X y]
cross          cross-products between a block and the dense remainder (dense or sparse)
absorbed       means of cells taken out before a likelihood-ratio test, without a design of them
alike          parts that differ in their scores only, factored once
leaf           intercepts of cells, absorbed into the residual variance
anova          balanced designs: the criterion from mean squares, and where these solve it
strata         cross-products kept per stratum, for a residual variance of each
sweep          eliminates one grouping factor after the other, and the exact adjoint of that
theta          theta <-> Cholesky factors, scales, signs, and solves with triangular factors
criterion      profiled ML and REML deviance with its gradient
hessian        the exact derivative of that gradient
information    average information, a cheaper curvature
fixed          the fixed part: independent columns, orthonormal, from its distinct rows
saturation     whether effects reach every row, and where the likelihood has no limit then
problem        one model ready to be searched: whitened, orthonormal, scaled
optimize       a start from moments, and trust-region Newton search with a certificate
functions      linear functions of coefficients by the numbers that are not zero
ddf            covariance of the variances, Satterthwaite degrees of freedom
error_slopes   how errors of estimates and predictions change with the covariance parameters
projected      cross-products of the random effects seen through P
kenward_roger  adjusted covariance, degrees of freedom and F-tests from cross-products
profile        the criterion with one parameter held, and its minimiser
profile_path   follows that parameter to the ends of an interval
prediction     error of predictions of fixed and random effects together, and draws of new tables
held           what random effects make of any columns at held variances, from one elimination
robust         sandwich covariance for independent clusters
=============  =================================================================================
"""
