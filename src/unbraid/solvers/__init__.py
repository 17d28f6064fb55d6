"""Iterative solvers, each driven by `unbraid.solvers.loop`."""
