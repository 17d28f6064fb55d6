"""Objects of this library as bytes and back, exactly, for checkpoints.

Arrays come back laid out in memory as they were, because the last bits of a matrix product can depend on that. Reading
calls nothing but what is listed here: a pickle may name any function of any module, and a file may come from anywhere.
"""

from __future__ import annotations

import enum
import io
import pickle
import sys
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from unbraid.bases import Basis, Placement
from unbraid.bases.constraints import Constraint
from unbraid.data.problem import Problem
from unbraid.data.sample_set import SampleSet
from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch
from unbraid.results.model import DecoupledModel

SAMPLES = (Problem, SampleSet)
"""What never goes into a file: it is there already, and may be large."""
CENTRED = "centred"
"""Samples that follow from others, and are no part of a file either."""
KINDS = (Basis, Placement, Constraint, Branch, DecoupledModel)
"""Classes of these kinds may be a user's own."""
GENERATORS = {one.__name__: one for one in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937)} | {
    one.__name__: one for one in (np.random.Philox, np.random.SFC64)
}


def dumps(thing: object, known: Mapping[str, object] | None = None) -> bytes:
    """An object as bytes; objects that are `known` by name are referred to, not written."""
    file = io.BytesIO()
    try:
        Writer(file, {} if known is None else known).dump(thing)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SettingError(
            f"checkpoint cannot keep a part of this fit: {error}. Bases and constraints of your own must be classes "
            "of a module; or leave out checkpoint."
        ) from error
    return file.getvalue()


def loads(data: bytes, known: Mapping[str, object] | None = None) -> Any:
    """The object that bytes of `dumps` stand for; `known` are the objects that were left out, by name."""
    return Reader(io.BytesIO(data), {} if known is None else known).load()


class Writer(pickle.Pickler):
    """A pickler that refuses to write what `Reader` would refuse to read."""

    def __init__(self, file: io.BytesIO, known: Mapping[str, object]) -> None:
        super().__init__(file, protocol=5)
        self.names = {id(thing): name for name, thing in known.items()}
        for name, thing in known.items():
            if isinstance(thing, SampleSet) and CENTRED in vars(thing):
                self.names[id(thing.centred)] = f"{name}.{CENTRED}"

    def persistent_id(self, thing: object) -> str | None:
        """The name under which an object is known, or None."""
        return self.names.get(id(thing))

    def reducer_override(self, thing: Any) -> Any:
        """How things are taken apart that pickle itself does not know."""
        if isinstance(thing, SAMPLES):
            raise pickle.PicklingError("samples are no part of a checkpoint")
        if isinstance(thing, enum.Enum):  # which versions of Python take apart in different ways
            return member, (type(thing), thing.name)
        if isinstance(thing, np.ndarray):
            entries = pickle.PickleBuffer(np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data)
            return laid_out, (entries, thing.dtype.str, thing.shape, thing.strides)
        if isinstance(thing, np.generic):
            return scalar, (thing.tobytes(), thing.dtype.str)
        if isinstance(thing, np.random.Generator):
            return generator, taken_apart(thing)
        if isinstance(thing, FunctionType | BuiltinFunctionType) and thing not in FUNCTIONS:
            raise pickle.PicklingError(f"{thing.__qualname__} is a function")
        if isinstance(thing, type) and not accepted(thing):
            raise pickle.PicklingError(f"{thing.__qualname__} is no class of this library")
        return NotImplemented


class Reader(pickle.Unpickler):
    """An unpickler that finds only classes that hold data, and imports nothing."""

    def __init__(self, file: io.BytesIO, known: Mapping[str, object]) -> None:
        super().__init__(file)
        self.known = known

    def persistent_load(self, name: str) -> object:
        """The object that is known by a name, or that follows from it."""
        thing = self.known[name.removesuffix(f".{CENTRED}")]
        return thing.centred if isinstance(thing, SampleSet) and name.endswith(f".{CENTRED}") else thing

    def find_class(self, module: str, name: str) -> Any:
        """The class or function of that name, if it is one of those that are accepted."""
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found in FUNCTIONS or (isinstance(found, type) and accepted(found)):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a checkpoint")


def accepted(cls: type) -> bool:
    """Whether it is a class of this library that holds data, or a user's of the kinds that a fit may be made of."""
    if issubclass(cls, KINDS):
        return True
    plain = is_dataclass(cls) or issubclass(cls, enum.Enum) or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    return plain and cls.__module__.split(".")[0] == "unbraid" and not issubclass(cls, SAMPLES)


def laid_out(data: bytes | bytearray, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """An array from its entries in C order, with the strides that it had."""
    entries = np.frombuffer(data, np.dtype(dtype)).reshape(shape)
    if entries.strides == strides or not entries.size:
        return entries.copy()
    reaches = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low, high = (sum(reach for reach in reaches if reach * sign > 0) for sign in (-1, 1))
    memory = np.empty(high - low + entries.itemsize, np.uint8)
    array: Array = np.ndarray(shape, entries.dtype, memory, -low, strides)
    array[...] = entries
    return array


def member(kind: type[enum.Enum], name: str) -> enum.Enum:
    """The member of an enumeration that has a name."""
    return kind[name]


def scalar(data: bytes, dtype: str) -> Any:
    """The number of a NumPy type that some bytes stand for."""
    return np.frombuffer(data, np.dtype(dtype))[0]


def taken_apart(rng: np.random.Generator) -> tuple[str, Any, Any]:
    """What makes a generator: its kind, its state, and the seeds that its children will have."""
    kind = type(rng.bit_generator).__name__
    seeds = getattr(rng.bit_generator.seed_seq, "state", None)
    if kind not in GENERATORS or not isinstance(seeds, dict):
        raise pickle.PicklingError(f"rng is a {kind} of another kind than NumPy's")
    return kind, rng.bit_generator.state, seeds


def generator(kind: str, state: Any, seeds: dict[str, Any]) -> np.random.Generator:
    """A generator of random numbers from its kind, its state and the seeds of its children."""
    bits = GENERATORS[kind](np.random.SeedSequence(**seeds))
    bits.state = state
    return np.random.Generator(bits)


FUNCTIONS = (laid_out, member, scalar, generator)
