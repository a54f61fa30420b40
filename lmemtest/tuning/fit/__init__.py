"""Fits of the quadratic laws to scores: spacings, their profile, the fit with its intervals, and its bootstrap."""
