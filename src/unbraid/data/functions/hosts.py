"""Functions with NumPy arrays at both ends, whatever they compute with inside."""

from __future__ import annotations

import secrets
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from time import monotonic
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unbraid.errors import LONGEST_QUOTE, MissingDependencyError, SettingError, install_hint
from unbraid.runtime.callers import GONE, call_known, make_known, pickled
from unbraid.runtime.helpers import IDLE, Helper, Message, next_helper

Function = Callable[[Any], Any]
Numbers = npt.NDArray[Any]
"""Of the type the function computes with: float32 tells of its precision, complex128 of a complex step."""


class AnswerError(Exception):
    """An answer that cannot be used. The text says what the function did: "returned None …"."""


class Host(Protocol):
    """A function as NumPy sees it; `takes` says what it is really given."""

    @property
    def takes(self) -> str:
        """'NumPy arrays', say, or 'torch tensors of float32'."""

    def __call__(self, x: Numbers) -> Numbers:
        """The function's answer to a point (m,) or a batch (S, m), as a new array. `x` is never written to."""

    def jacobians(self, batched: bool) -> Callable[[Numbers], Numbers] | None:
        """The function (S, m) -> (S, n, m) of exact Jacobians; None if this host has none."""


class Memory(Protocol):
    """What a function has answered at points (m,)."""

    def get(self, point: Numbers) -> Numbers | None:
        """The answer at a point; None where it is not known."""

    def add(self, point: Numbers, answer: Numbers) -> None:
        """Keep an answer."""


@dataclass(frozen=True)
class PlainFunction:
    """A function of NumPy arrays."""

    f: Function
    takes: str = "NumPy arrays"

    def __call__(self, x: Numbers) -> Numbers:  # noqa: D102
        return as_numbers(self.f(x.copy()), x)  # f may write to what it is given

    def jacobians(self, batched: bool) -> None:  # noqa: D102
        return None


class TimedFunction:
    """A function whose calls are made by other processes, each of which is ended where a call takes too long.

    A point at which that happened is not asked for again.
    """

    def __init__(self, name: str, f: Function, seconds: float) -> None:
        self.func, self.__qualname__ = f, getattr(f, "__qualname__", type(f).__qualname__)
        self.name, self.seconds, self.key = name, seconds, secrets.token_hex(8)
        self.slow: set[bytes] = set()
        try:
            self.content = pickled(f)
        except Exception as error:
            raise self.refusal(str(error)) from error
        self.idle = [self.new_helper()]

    def __call__(self, x: Numbers) -> Any:
        """The answer, or what the function raised."""
        rows = {row.tobytes() for row in np.atleast_2d(x)}
        if rows & self.slow:
            raise self.no_answer()
        helper, began = self.idle.pop() if self.idle else self.new_helper(), monotonic()
        timer = threading.Timer(self.seconds, helper.kill)
        timer.start()
        try:
            answer = helper.ask(Message.of((call_known, (self.key, x), None)))
        except BaseException:  # Ctrl-C
            helper.end()
            raise
        finally:
            timer.cancel()
        late = monotonic() - began >= self.seconds
        if late or not helper.there:
            helper.end()
        else:
            self.idle.append(helper)
        if answer.kind == "failed":
            raise answer.value
        if answer.kind == "done":
            return answer.value
        if late:
            self.slow |= rows if len(rows) == 1 else set()
            raise self.no_answer()
        raise AnswerError("ended its process" if answer.value is None else f"gave what cannot be sent ({answer.value})")

    def no_answer(self) -> AnswerError:
        """What to say of a call that took too long."""
        return AnswerError(f"gave no answer within {self.seconds:g} s")

    def new_helper(self) -> Helper:
        """A process that knows the function."""
        helper = next_helper()
        answer = helper.ask(Message.of((make_known, (self.key, self.content), None))) if helper.wait() else GONE
        if answer.kind != "done":
            helper.end()
            raise self.refusal(str(answer.value or "none began"))
        return helper

    def refusal(self, why: str) -> SettingError:
        """What to say of a function that no other process can call."""
        return SettingError(
            f"timeout= needs {self.name} in another process, which can be ended, and it cannot be sent there "
            f"({' '.join(why.split())[:LONGEST_QUOTE]}). Leave out timeout=, or give a function without locks, open "
            "files and the like; those of scripts and notebooks need cloudpickle."
        )

    def close(self) -> None:
        """Keep the processes for others."""
        IDLE.extend(self.idle)
        self.idle.clear()


def as_numbers(given: Any, x: Numbers) -> Numbers:
    """What a function has returned for x, as an array."""
    if hasattr(given, "detach"):  # a torch tensor
        given = given.detach().cpu().numpy()
    refuse_none(given)
    array = np.array(given)  # a copy: f may return the same array again and again
    if array.dtype == object:
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiubc":
        raise AnswerError(f"returned {array.dtype} instead of numbers")
    if array.dtype.kind == "c" and not np.iscomplexobj(x):
        raise AnswerError("returned complex numbers for real ones")
    return array


def refuse_none(given: object) -> None:
    """Refuse None, which a function without a return statement gives."""
    if given is None:
        raise AnswerError("returned None (does it lack a return statement?)")


def hosts_for(
    f: Function, probes: npt.NDArray[np.float64], framework: str | None, memory: Memory | None = None
) -> list[Host]:
    """The hosts under which `f` may work, the likeliest first.

    What f answers to a NumPy array says most: a tensor, a jax array, or numbers. Only a function that refuses NumPy
    arrays is tried with those of a framework, and only if that has been imported, for else f cannot need it.
    `framework` ("torch", "jax") settles the question.
    """
    if isinstance(f, TimedFunction) and framework is None:
        return [PlainFunction(f)]
    if framework is not None and find_spec(framework) is None:
        raise MissingDependencyError(
            f'derivatives="{framework}" needs {framework}, which is not installed: {install_hint(framework)}.'
        )
    if framework == "torch" or (framework is None and is_module(f)):
        return torch_hosts(f)
    if framework == "jax":
        return jax_hosts(f)
    plain: list[Host] = [PlainFunction(f)]
    answer = first_answer(f, probes, memory)
    if isinstance(answer, Exception):
        others = {"torch": torch_hosts, "jax": jax_hosts}
        return plain + [host for name, make in others.items() if imported(name) for host in make(f)]
    if imported("torch") and isinstance(answer, imported("torch").Tensor):
        return torch_hosts(f) + plain
    if imported("jax") and isinstance(answer, imported("jax").Array):
        return jax_hosts(f) + plain
    return plain


def is_module(f: Function) -> bool:
    """Whether `f` is a torch network or a method of one."""
    if not imported("torch"):
        return False
    from unbraid.data.functions.torch_functions import network_of

    return network_of(f) is not None


def imported(framework: str) -> Any:
    """The module of that name, if somebody has imported it; else None."""
    return sys.modules.get(framework)


def first_answer(f: Function, probes: npt.NDArray[np.float64], memory: Memory | None = None) -> Any:
    """What `f` returns for a point, or else for a batch; of a list, its first entry. An exception if it refuses all.

    A point whose answer is in memory is not asked for again, and an answer in numbers is kept there.
    """
    answer: Any = None
    for x in (*probes, *probes[:, None]):
        known = memory.get(x) if memory is not None and x.ndim == 1 else None
        if known is not None:
            return known
        with quiet(), jax_precision():
            try:
                given = answer = f(x.copy())
            except Exception as error:
                answer = error
                continue
        while isinstance(answer, list | tuple) and answer:
            answer = answer[0]
        if memory is not None and x.ndim == 1 and isinstance(answer, float | int | np.ndarray | np.generic):
            with suppress(Exception):  # whoever asks again is told what is wrong with it
                memory.add(x, as_numbers(given, x))
        break
    return answer


def torch_hosts(f: Function) -> list[Host]:
    """Hosts for a function of torch tensors."""
    from unbraid.data.functions.torch_functions import hosts

    return list(hosts(f))


def jax_hosts(f: Function) -> list[Host]:
    """Hosts for a function of jax arrays."""
    from unbraid.data.functions.jax_functions import hosts

    return list(hosts(f))


def jax_precision() -> AbstractContextManager[Any]:
    """Double precision if jax is there: constants that it first meets in single precision it remembers so."""
    if not imported("jax"):
        return nullcontext()
    from unbraid.data.functions.jax_functions import double_precision

    return double_precision()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings, for calls that the user has not asked for."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
