"""The mixed-model engine: arrays in, arrays out, numpy and scipy only.

The model is ``y = X b + sum_j Z_j u_j + e`` with ``u_j ~ N(0, s2 Sigma_j)`` per level and
``e ~ N(0, s2 / w)``; ``Sigma_j = L_j L_j'`` and theta stacks the lower triangles of the ``L_j``.
In the order of the mathematics, each file on those above it:

=============  =================================================================================
               **the matrices**
structure      terms, blocks of columns, and in which order they are eliminated, by counted cost
cross          cross-products between a block and the dense remainder (dense, sparse, by parts)
products       terms and cells -> blocked cross-products of [Z X y]; groups that are alike
span           what the columns span: independent fixed effects; whether a residual is left
               **the criterion**
theta          theta <-> triangular factors, scales, signs; solves with triangular factors
sweep          eliminates one grouping factor after the other, and the exact adjoint of that
criterion      profiled ML and REML deviance with its gradient; from mean squares where the design is balanced
residual       a residual variance per stratum; intercepts of cells in the residual variance
problem        one model ready to be searched: whitened, orthonormal, scaled
absorbed       the same with means of cells taken out, without a design of them
               **its optimum**
hessian        second derivatives: average information, cheap, and the exact Hessian
optimize       start from moments, trust-region Newton search with a certificate
               **answers and counts**
pseudo         a generalised model as a sequence of linear ones with a known residual variance
laplace        Laplace's approximation of its likelihood, with the exact gradient, and its maximum
separation     fixed effects without a bound, and the pseudo-answers that give them one
               **errors at the optimum**
functions      linear functions of coefficients by the numbers that are not zero
prediction     errors of estimates and predictions, and how they change with theta
ddf            covariance of the variances, Satterthwaite degrees of freedom
kenward_roger  adjusted covariance, degrees of freedom and F-tests from cross-products
profile        the criterion with one parameter held, and its minimiser
profile_path   follows that parameter to the ends of an interval
               **at held variances**
held           what random effects make of any columns, from one elimination; draws of cells
robust         sandwich covariance for independent clusters
=============  =================================================================================
"""
