"""Tests that are looked at while data come in: spending, boundaries, successive t-tests, e-values."""
