# Moderated variances of limma: prior by fitFDist and posterior by squeezeVar, on small examples.
# Rscript moderation.R > moderation.json
library(limma); library(jsonlite)
cases <- list(
 list(x=c(0.5,1,4,0.2), df=rep(6,4)),
 list(x=c(0.21,0.35,0.18,2.9,0.44,0.27,0.31,1.2), df=rep(11,8)),
 list(x=c(1.1,0.9,1.05,0.97,1.02,0.99), df=rep(5,6)),
 list(x=c(0.3,2.5,0.8,1.7,0.05,6.1,0.9), df=c(4.2,7.9,11,3.3,5.5,10.7,6.1)))
out <- lapply(cases, function(k) { f <- fitFDist(k$x, k$df); s <- squeezeVar(k$x, k$df)
 list(x=k$x, df=k$df, s0=f$scale, d0=f$df2, posterior=s$var.post) })
cat(toJSON(list(limma=as.character(packageVersion("limma")), cases=out), digits=17, auto_unbox=TRUE, pretty=TRUE))
