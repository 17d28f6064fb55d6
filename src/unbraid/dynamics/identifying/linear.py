r"""The best linear approximation of a record, where an identification begins: by subspaces, then by its simulation.

Of a linear system the outputs of f moments are, for every initial state x,

    [y_t; …; y_{t+f-1}] = Γ x_t + H [u_t; …; u_{t+f-1}],        Γ = [C; C A; C A²; …],

so that what of them is explained by the past, once the inputs of the same moments are projected out, spans the columns
of Γ (PO-MOESP [1]_). Singular values tell the order, Γ gives C and A, and B, D and the initial state follow by linear
least squares on the simulation.

References
----------
.. [1] M. Verhaegen, "Identification of the deterministic part of MIMO state space models given in innovations form
   from input-output data", Automatica 30 (1994).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.dynamics.models.feedback import Course
from unbraid.dynamics.models.recursions import recursion_band, solve_recursion
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, IndexArray

HORIZON = 15
"""Moments in the past and in the future that are compared, at most."""
MOST_COLUMNS = 20_000
"""Moments t that are looked at, at most."""
DEPENDENT = 1e-9
"""Of the largest singular value of signals: below this they are combinations of others."""
LARGEST_POLE = 0.999
"""Radius that the poles of a first linear model are brought to, where they lie beyond it."""


def observability(courses: Sequence[Course], horizon: int) -> tuple[Array, Array]:
    """What spans Γ: directions (f ny, ·) and their singular values, largest first. Constants are projected out."""
    future_inputs, past, future, few = [], [], [], independent(np.concatenate([course.v for course in courses]))
    for course, begins in zip(courses, windows(courses, horizon), strict=True):
        if not len(begins):
            continue
        v, y, rows = course.v @ few, filled(course), begins[:, None] + np.arange(horizon)
        ones = np.ones((len(begins), 1))
        future_inputs.append(np.concatenate([v[rows + horizon].reshape(len(begins), -1), ones], axis=1))
        past.append(np.concatenate([one[rows].reshape(len(begins), -1) for one in (v, y)], axis=1))
        future.append(y[rows + horizon].reshape(len(begins), -1))
    blocks = [np.concatenate(several) for several in (future_inputs, past, future)]
    R = np.asarray(np.linalg.qr(np.concatenate(blocks, axis=1), mode="r")).T
    first, second = blocks[0].shape[1], blocks[0].shape[1] + blocks[1].shape[1]
    U, s, _ = np.linalg.svd(R[second:, first:second], full_matrices=False)
    return U, s


def independent(v: Array) -> Array:
    """Combinations (p, ·) of signals (T, p) that carry all that varies in them, each thing once."""
    _, s, V = np.linalg.svd(v - v.mean(axis=0), full_matrices=False)
    return np.asarray(V[s > DEPENDENT * s[0]].T) if s[-1] <= DEPENDENT * s[0] else np.eye(v.shape[1])


def windows(courses: Sequence[Course], horizon: int) -> list[IndexArray]:
    """Where in every course there are two horizons one after another; with few gaps inside, where there are such."""
    step = max(1, -(-sum(map(len, courses)) // MOST_COLUMNS))
    every = [np.arange(0, max(len(course) - 2 * horizon + 1, 0), step) for course in courses]
    if not sum(map(len, every)):
        raise DataError("The records are too short for a model of states: give longer ones.")
    good = []
    for course, begins in zip(courses, every, strict=True):
        gaps = np.concatenate([[0], np.cumsum(~course.weight.all(axis=1))])
        good.append(begins[gaps[begins + 2 * horizon] - gaps[begins] <= horizon // 2])
    return good if sum(map(len, good)) > 2 * horizon * (courses[0].v.shape[1] + courses[0].y.shape[1]) else every


def filled(course: Course) -> Array:
    """The outputs of a course, with straight lines across what is not known."""
    y, t = course.y.copy(), np.arange(len(course))
    for i in range(y.shape[1]):
        known = course.weight[:, i] > 0.0
        if known.any() and not known.all():
            y[:, i] = np.interp(t, t[known], y[known, i])
    return y


def horizon_for(courses: Sequence[Course], order: int) -> int:
    """So many moments that they tell of an order, and that records have many times as many."""
    longest = max(len(course) for course in courses)
    width = courses[0].v.shape[1] + courses[0].y.shape[1]
    many = int(np.clip(longest // (6 * width), order + 1, max(HORIZON, order + 2)))
    return max(2, min(many, longest // 4))


def linear_model(courses: Sequence[Course], directions: Array, order: int) -> Candidate:
    """The linear model of an order whose Γ these directions span."""
    ny, nu = courses[0].y.shape[1], courses[0].v.shape[1]
    gamma = directions[:, :order]
    C = gamma[:ny]
    A = np.asarray(np.linalg.lstsq(gamma[:-ny], gamma[ny:], rcond=None)[0], dtype=np.float64)
    radius = np.abs(np.linalg.eigvals(A)).max()
    if radius > LARGEST_POLE:
        A = A * (LARGEST_POLE / radius)
    B, D, offset, pasts = response(courses, A, C)
    L = np.block([[A, B], [C, D]])
    n = order + ny
    bias = np.concatenate([np.zeros(order), offset])
    return Candidate(L, np.zeros((0, order + nu)), np.zeros((n, 0)), bias, None, np.zeros((0, 0)), pasts)


def response(courses: Sequence[Course], A: Array, C: Array) -> tuple[Array, Array, Array, tuple[Array, ...]]:
    """B, D, a constant of the outputs, and the initial states, by least squares on the simulation for given A and C."""
    (ny, nx), nu = C.shape, courses[0].v.shape[1]
    shared = nx * nu + ny * nu + ny
    size = shared + nx * len(courses)
    N, right = np.zeros((size, size)), np.zeros(size)
    for k, course in enumerate(courses):
        T = len(course)
        band = recursion_band(np.broadcast_to(A, (T, nx, nx)), (1,))
        force = np.zeros((nx * nu + nx, T, nx))
        for i in range(nx):
            force[i * nu : (i + 1) * nu, :, i] = course.v.T
            force[nx * nu + i, 0] = A[:, i]
        x = solve_recursion(band, force)  # of x_{t+1}
        start = np.zeros((len(x), 1, nx))
        start[nx * nu :, 0] = np.eye(nx)
        x = np.concatenate([start, x[:, :-1]], axis=1)
        direct = np.zeros((ny * nu + ny, T, ny))
        for i in range(ny):
            direct[i * nu : (i + 1) * nu, :, i] = course.v.T
            direct[ny * nu + i, :, i] = 1.0
        rows = np.concatenate([x[: nx * nu] @ C.T, direct, x[nx * nu :] @ C.T]) * course.weight
        D = rows.reshape(len(rows), -1)
        own = np.r_[0:shared, shared + k * nx : shared + (k + 1) * nx]
        N[np.ix_(own, own)] += D @ D.T
        right[own] += D @ (course.weight * course.y).ravel()
    scale = 1.0 / np.sqrt(np.where(np.diagonal(N) > 0.0, np.diagonal(N), 1.0))
    solved = scale * np.linalg.lstsq(N * scale[:, None] * scale, right * scale, rcond=1e-12)[0]
    B, D, offset = np.split(solved[:shared], [nx * nu, nx * nu + ny * nu])
    pasts = tuple(solved[shared + k * nx : shared + (k + 1) * nx][None] for k in range(len(courses)))
    return B.reshape(nx, nu), D.reshape(ny, nu), offset, pasts


def regressed(courses: Sequence[Course], phis: Sequence[Array]) -> Candidate:
    """The linear NARX model by least squares one step ahead, at φ (T, mφ) of measured outputs, NaN where unknown."""
    ny = courses[0].y.shape[1]
    phi = np.concatenate([np.column_stack([one, np.ones(len(one))]) for one in phis])
    y = np.concatenate([course.y for course in courses])
    weight = np.concatenate([course.weight for course in courses])
    known = np.isfinite(phi).all(axis=1)
    if known.sum() > 2 * phi.shape[1]:  # else zeros stand for what is not known
        weight = weight * known[:, None]
    phi = np.nan_to_num(phi)
    L = np.stack([np.linalg.lstsq(phi[w > 0], t[w > 0], rcond=None)[0] for w, t in zip(weight.T, y.T, strict=True)])
    m = phi.shape[1] - 1
    pasts = tuple(course.past for course in courses)
    return Candidate(L[:, :m], np.zeros((0, m)), np.zeros((ny, 0)), L[:, m], None, np.zeros((0, 0)), pasts)
