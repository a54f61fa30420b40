"""How large a study of algorithms must be: power of a comparison by simulation and in closed form.

===================  ==================================================================
power                `power` and `PowerResult`: designs, simulated studies, what follows for planning
variance_components  how much scores vary, and at which level; from a pilot study or given
draw                 one planned study: its scores, the test of two algorithms, and its power and errors in closed form
plan                 `plan` and `Plan`: tuning runs, splits, seeds and benchmarks for a budget, or at the least cost
stages               variance and cost of a unit of each stage, from components; the best whole numbers of nested units
===================  ==================================================================
"""
