"""What tells one fit from another: its settings and its samples, each as a short text under a name."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral
from typing import Any

import numpy as np

from unbraid.data.problem import Problem
from unbraid.errors import as_generator
from unbraid.kernels.arrays import Array
from unbraid.runtime.text import clean_name

ENTRIES = 1 << 20
"""So many entries of each array of the samples are looked at, in rows that lie evenly among all."""
ARRAY = "numbers "
"""How the texts of arrays begin, which tell a reader nothing."""
GENERATOR = "a generator"
"""How the text of a generator of random numbers begins."""
NAMED = 3
"""Differences that a message names."""


def fingerprint(problem: Problem, rng: object, settings: Mapping[str, object]) -> dict[str, str]:
    """Marks of a fit, by name: two fits with the same marks are the same, but for samples between those looked at."""
    marks = {name: text for key, value in settings.items() for name, text in marks_of(key, value)}
    marks["rng"] = seed_mark(rng)
    for name in ("X", "F", "J", "weights"):
        marks[name] = rows_mark(getattr(problem, name))
    return marks


def marks_of(name: str, thing: Any) -> Iterator[tuple[str, str]]:
    """Short texts that tell a thing from others, by name: its own, and those of its parts."""
    if thing is None or isinstance(thing, bool | int | float | str | np.generic):
        yield name, repr(thing.item() if isinstance(thing, np.generic) else thing)
    elif isinstance(thing, enum.Enum):
        yield name, thing.name
    elif isinstance(thing, np.ndarray):
        yield name, array_mark(thing)
    elif isinstance(thing, set | frozenset):
        yield name, repr(sorted(thing))
    elif isinstance(thing, Mapping):
        for key in sorted(thing):
            yield from marks_of(f"{name}[{key}]", thing[key])
    elif isinstance(thing, Sequence):
        yield name, f"{len(thing)} entries"
        for i, part in enumerate(thing):
            yield from marks_of(f"{name}[{i}]", part)
    else:
        yield name, getattr(thing, "__qualname__", type(thing).__qualname__)
        parts = (
            {one.name: getattr(thing, one.name) for one in fields(thing)}
            if is_dataclass(thing)
            else attributes_of(thing)
        )
        for key, part in parts.items():
            yield from marks_of(f"{name}.{key}", part)


def attributes_of(thing: object) -> dict[str, object]:
    """The attributes of an object; functions and classes are told by their names alone."""
    return {} if callable(thing) and hasattr(thing, "__qualname__") else dict(getattr(thing, "__dict__", {}))


def seed_mark(rng: object) -> str:
    """A seed as it is, a generator by its state."""
    if rng is None or isinstance(rng, Integral):
        return repr(rng if rng is None else int(rng))
    bits = as_generator(rng).bit_generator
    return f"{GENERATOR} {digest_bytes(repr((bits.state, getattr(bits.seed_seq, 'state', None))).encode())}"


def rows_mark(array: Array | None) -> str:
    """An array of samples by its shape and some of its rows."""
    if array is None:
        return "None"
    rows = max(1, ENTRIES // max(1, int(np.prod(array.shape[1:]))))
    step = -(-array.shape[0] // rows)
    return array_mark(np.asarray(array[::step]), array.shape)


def array_mark(array: Array, shape: tuple[int, ...] | None = None) -> str:
    """An array by its shape and its entries."""
    of = " x ".join(map(str, array.shape if shape is None else shape))
    return f"{ARRAY}{of} {digest_bytes(np.ascontiguousarray(array).tobytes())}"


def digest_bytes(data: bytes) -> str:
    """A short text that only the same bytes have."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def describe_differences(now: Mapping[str, str], then: Mapping[str, str]) -> str:
    """What differs, in words; empty where nothing does."""
    names = [name for name in {**now, **then} if now.get(name) != then.get(name)]
    told = [
        describe_difference(name, now.get(name, "not there"), then.get(name, "not there")) for name in names[:NAMED]
    ]
    return ", ".join(told) + (f", and {len(names) - NAMED} more" if len(names) > NAMED else "")


def describe_difference(name: str, now: str, then: str) -> str:
    """How one mark differs, as it is now and as it was then, in words."""
    name = clean_name(name)
    if now.startswith(ARRAY) and then.startswith(ARRAY):
        return f"{name} holds other numbers"
    if now.startswith(GENERATOR) and then.startswith(GENERATOR):
        return f"{name} is in another state"
    return f"{name} is {without_digest(now)} and was {without_digest(then)}"


def without_digest(text: str) -> str:
    """A mark as a message shows it: arrays and generators without their digests."""
    return "an array" if text.startswith(ARRAY) else GENERATOR if text.startswith(GENERATOR) else clean_name(text)
