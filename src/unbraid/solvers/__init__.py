"""Iterative solvers, each driven by `unbraid.iterate`."""
