"""Entries of F and J that are not known, filled well enough to search with: the fit itself leaves them out."""

from __future__ import annotations

import numpy as np

from unbraid.arrays import Array, blocks
from unbraid.jacobians import local_slopes
from unbraid.problem import Problem

NEIGHBOURS = 8
"""Samples that a missing entry is taken from."""


def filled(problem: Problem) -> Problem:
    """The problem without gaps: what is missing comes from the nearest samples that have it.

    Jacobians come from the values around a sample where there are values, else, as values do, from neighbours' own.
    """
    if problem.complete:
        return problem
    spread = np.std(problem.X, axis=0)
    points = (problem.X - problem.X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    F, J = problem.F, problem.J
    if F is not None:
        F = from_neighbours(points, F)
    if J is not None and np.isnan(J).any():
        if F is None:
            J = from_neighbours(points, J.reshape(problem.S, -1)).reshape(J.shape)
        else:
            slopes = local_slopes(points, F, 3 * (problem.m + 1)) / np.where(spread > 0.0, spread, 1.0)
            J = np.where(np.isnan(J), slopes, J)
    return Problem(problem.X, F, J, problem.weights, input_names=problem.input_names, output_names=problem.output_names)


def from_neighbours(points: Array, rows: Array) -> Array:
    """Rows (S, k) with the mean of the nearest known entries of a column in place of NaN; 0 where none is known."""
    from scipy.spatial import KDTree

    result = rows.copy()
    for column in result.T:
        gaps = np.isnan(column)
        if gaps.all():
            column[:] = 0.0
        elif gaps.any():
            known = np.flatnonzero(~gaps)
            tree, count = KDTree(points[known]), min(NEIGHBOURS, known.size)
            here = np.flatnonzero(gaps)
            for part in blocks(here.size, count):
                _, near = tree.query(points[here[part]], count)
                column[here[part]] = column[known[near.reshape(-1, count)]].mean(axis=-1)
    return result
