"""Objects of a fit as plain values and arrays, and back, exactly: what checkpoints are made of.

An `ObjectRecord` is JSON text and the bytes of the arrays that it names. Numbers, texts, true, false, null and lists
stand for themselves; all else is an object with one key, which says what it is:

    {"tuple": [value, ...]}                 {"array": [place, dtype, shape, strides]}
    {"dict": [[key, value], ...]}           {"number": [dtype, entry]}         of a NumPy type
    {"float": "nan"}                        {"member": [enumeration, name]}
    {"known": name}                         {"generator": [kind, state, seeds]}
    {"object": [class, {field: value}]}

Reading calls nothing that a file names. It makes instances of classes that are there already and that hold data, and
sets their fields, to values of these kinds. A class is never a value, so nothing that belongs to one can be set.

Arrays come back laid out in memory as they were, because the last bits of a matrix product can depend on that.
"""

from __future__ import annotations

import enum
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cached_property
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
from unbraid.solvers.batch import Batch

SAMPLES = (Problem, SampleSet)
"""What never goes into a file: it is there already, and may be large."""
CENTRED = ".centred"
"""What is added to the name of samples for those that follow from them, and are no part of a file either."""
KINDS = (Basis, Placement, Constraint, Branch, DecoupledModel)
"""Classes of these kinds may be a user's own."""
PLAIN = (type(None), bool, int, str)
"""What JSON has as it is."""
NUMBERS = "biufc"
"""The kinds of NumPy types that records hold: truth values, whole, real and complex numbers."""
GENERATORS = {
    one.__name__: one
    for one in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
}
SEEDS = {"entropy", "spawn_key", "pool_size", "n_children_spawned"}
"""What makes a sequence of seeds."""
LARGEST_POOL = 1024
"""Words of a sequence of seeds, at most; NumPy's have 4."""
SPREAD = 64
"""An array may lie in memory of so many times its own size, and a MiB: more is a view of something much larger."""

Reader = Callable[[Any], Any]


class RecordError(ValueError):
    """Something that has no place in a record."""


@dataclass(frozen=True)
class ObjectRecord:
    """An object as JSON text, and the bytes of its arrays."""

    text: bytes
    arrays: bytes


def write_record(thing: object, known: Mapping[str, object] | None = None) -> ObjectRecord:
    """The record of an object; objects that are `known` by name are referred to, not written."""
    try:
        return RecordWriter({} if known is None else known).write(thing)
    except RecordError as error:
        raise SettingError(
            f"checkpoint cannot keep a part of this fit: {error}. Bases and constraints of your own must be classes "
            "of a module; or leave out checkpoint."
        ) from error


def read_record(record: ObjectRecord, known: Mapping[str, object] | None = None) -> Any:
    """The object that a record stands for; `known` are the objects that were left out, by name."""
    try:
        return RecordReader(record.arrays, {} if known is None else known).value(json.loads(record.text))
    except RecordError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        raise RecordError(f"{type(error).__name__}: {error}") from error


class RecordWriter:
    """Takes objects apart."""

    def __init__(self, known: Mapping[str, object]) -> None:
        self.names = {id(thing): name for name, thing in known.items()}
        for name, thing in known.items():
            if isinstance(thing, SampleSet) and CENTRED[1:] in vars(thing):
                self.names[id(thing.centred)] = name + CENTRED
        self.entries: list[bytes] = []
        self.size = 0
        self.written: dict[int, tuple[Array, Any]] = {}  # the arrays as well, so that no other gets their id

    def write(self, thing: object) -> ObjectRecord:
        """The record of an object."""
        tree = self.value(thing)
        return ObjectRecord(json.dumps(tree, allow_nan=False, separators=(",", ":")).encode(), b"".join(self.entries))

    def value(self, thing: Any) -> Any:
        """A value as JSON has it."""
        if isinstance(thing, PLAIN) and type(thing) in PLAIN:
            return thing
        if id(thing) in self.names:
            return {"known": self.names[id(thing)]}
        if type(thing) is float:
            return thing if math.isfinite(thing) else {"float": str(thing)}
        if type(thing) is list:
            return [self.value(one) for one in thing]
        if type(thing) is tuple:
            return {"tuple": [self.value(one) for one in thing]}
        if type(thing) is dict:
            return {"dict": [[self.value(key), self.value(one)] for key, one in thing.items()]}
        if isinstance(thing, np.ndarray):
            return self.array(thing)
        if isinstance(thing, np.generic):
            return {"number": [number_type(thing.dtype).str, thing.tobytes().hex()]}
        if isinstance(thing, enum.Enum):
            return {"member": [class_name(type(thing)), thing.name]}
        if isinstance(thing, np.random.Generator):
            return {"generator": [self.value(part) for part in taken_apart(thing)]}
        return {"object": [class_name(type(thing)), {name: self.value(one) for name, one in state_of(thing).items()}]}

    def array(self, array: Array) -> Any:
        """Where the entries of an array are, and how it lies in memory."""
        if id(array) not in self.written:
            entries = np.ascontiguousarray(array)
            strides = array.strides if reach(array.shape, array.strides)[2] <= most_memory(array.nbytes) else None
            place = [self.size, number_type(array.dtype).str, list(array.shape), strides or entries.strides]
            self.written[id(array)] = array, {"array": place}
            self.entries.append(entries.tobytes())
            self.size += entries.nbytes
        return self.written[id(array)][1]


class RecordReader:
    """Puts objects together."""

    def __init__(self, entries: bytes, known: Mapping[str, object]) -> None:
        self.entries, self.known = entries, known
        self.kinds: dict[str, Reader] = {
            "tuple": lambda several: tuple(map(self.value, several)),
            "dict": lambda pairs: {self.value(key): self.value(one) for key, one in pairs},
            "float": float,
            "known": self.known_one,
            "array": lambda told: self.array(*told),
            "number": lambda told: np.frombuffer(bytes.fromhex(told[1]), number_type(np.dtype(told[0])))[0],
            "member": lambda told: find_class(told[0], enum.Enum)[told[1]],  # type: ignore[index]
            "generator": lambda told: generator(*map(self.value, told)),
            "object": lambda told: self.object(find_class(told[0]), told[1]),
        }

    def value(self, told: Any) -> Any:
        """What a value of JSON stands for."""
        if isinstance(told, list):
            return [self.value(one) for one in told]
        if isinstance(told, dict):
            ((kind, content),) = told.items()
            return self.kinds[kind](content)
        return told

    def known_one(self, name: str) -> object:
        """The object that is known by a name, or that follows from it."""
        thing = self.known[name.removesuffix(CENTRED)]
        return thing.centred if isinstance(thing, SampleSet) and name.endswith(CENTRED) else thing

    def object(self, kind: type, told: dict[str, Any]) -> Any:
        """An instance of a class with the fields that are told, and the defaults of those that follow from them."""
        values = {name: self.value(one) for name, one in told.items()}
        if issubclass(kind, enum.Enum):
            raise RecordError(f"{kind.__name__} has members only")
        if issubclass(kind, tuple):
            return kind(**values)
        if is_dataclass(kind):
            defaults = {one.name: one.default for one in fields(kind)}
            needed = {name for name, default in defaults.items() if default is MISSING}
            if not needed <= values.keys() <= defaults.keys():
                raise RecordError(f"{kind.__name__} has other fields")
            values = defaults | values
        elif any(name.startswith("__") or hasattr(kind, name) for name in values):
            raise RecordError(f"{kind.__name__} has no such attribute")
        thing = object.__new__(kind)
        for name, one in values.items():
            object.__setattr__(thing, name, one)
        return thing

    def array(self, place: int, dtype: str, shape: list[int], strides: list[int]) -> Array:
        """An array from its entries in C order, with the strides that it had."""
        kind = number_type(np.dtype(dtype))
        if min(shape, default=0) < 0 or place < 0:
            raise RecordError("an array has a negative length")
        entries = np.frombuffer(self.entries, kind, math.prod(shape), place).reshape(shape)
        if list(entries.strides) == strides or not entries.size:
            return entries.copy()
        low, _, memory = reach(shape, strides)
        if memory > most_memory(entries.nbytes):
            raise RecordError("an array lies in more memory than it can need")
        array: Array = np.ndarray(shape, kind, np.empty(memory + kind.itemsize, np.uint8), -low, strides)
        array[...] = entries
        return array


def number_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type, if it is one of numbers."""
    if dtype.kind not in NUMBERS:
        raise RecordError(f"an array of {dtype} is no array of numbers")
    return dtype


def reach(shape: Any, strides: Any) -> tuple[int, int, int]:
    """How far an array reaches below and above its first entry, and from end to end, in bytes."""
    reaches = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low, high = (sum(one for one in reaches if one * sign > 0) for sign in (-1, 1))
    return low, high, high - low


def most_memory(size: int) -> int:
    """Bytes of memory in which an array of so many bytes may lie."""
    return SPREAD * size + (1 << 20)


def state_of(thing: Any) -> dict[str, Any]:
    """The fields of an object that make it."""
    if isinstance(thing, Batch):
        return thing.__getstate__()
    if isinstance(thing, tuple):
        return dict(thing._asdict())  # type: ignore[attr-defined]
    if is_dataclass(thing):
        return {one.name: getattr(thing, one.name) for one in fields(thing)}
    kind = type(thing)
    return {
        name: one for name, one in vars(thing).items() if not isinstance(getattr(kind, name, None), cached_property)
    }


def class_name(kind: type) -> str:
    """The name by which a class can be found again; refused where it has no place in a record."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    if find_class_or_none(name) is not kind:
        raise RecordError(f"{kind.__qualname__} is no class of this library that holds data")
    return name


def find_class(name: str, of: type = object) -> type:
    """The class of that name, if it is there and has a place in a record."""
    found = find_class_or_none(name)
    if found is None or not issubclass(found, of):
        raise RecordError("a class has no place in a checkpoint")
    return found


def find_class_or_none(name: str) -> type | None:
    """The class of that name in a module that has been imported; None if there is none that records may hold."""
    module, _, last = name.rpartition(".")
    found = vars(sys.modules[module]).get(last) if module in sys.modules else None
    if not isinstance(found, type) or found.__module__ != module or issubclass(found, SAMPLES):
        return None
    ours = module.partition(".")[0] == "unbraid"
    plain = (
        is_dataclass(found) or issubclass(found, enum.Enum) or (issubclass(found, tuple) and hasattr(found, "_make"))
    )
    return found if (ours and plain) or issubclass(found, KINDS) else None


def taken_apart(rng: np.random.Generator) -> tuple[str, Any, Any]:
    """What makes a generator: its kind, its state, and the seeds that its children will have."""
    kind = type(rng.bit_generator).__name__
    seeds = getattr(rng.bit_generator.seed_seq, "state", None)
    if kind not in GENERATORS or not isinstance(seeds, dict):
        raise RecordError(f"rng is a {kind} of another kind than NumPy's")
    return kind, rng.bit_generator.state, seeds


def generator(kind: str, state: Any, seeds: dict[str, Any]) -> np.random.Generator:
    """A generator of random numbers from its kind, its state and the seeds of its children."""
    if not seeds.keys() <= SEEDS or not 4 <= seeds["pool_size"] <= LARGEST_POOL:
        raise RecordError("seeds are not those of a generator")
    bits = GENERATORS[kind](np.random.SeedSequence(**seeds))
    bits.state = state
    return np.random.Generator(bits)
