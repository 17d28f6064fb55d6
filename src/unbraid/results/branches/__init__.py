"""Branches that are no placed basis: piecewise polynomials and closed formulas; and branches for SciPy."""
