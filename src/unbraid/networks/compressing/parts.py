"""Which part of a network is meant, and a network in which it is replaced."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import torch

from unbraid.data.functions.forms import deed
from unbraid.errors import SettingError, shown
from unbraid.networks.decoupled_module import from_extra_state

SLICE = re.compile(r"(?:(?P<owner>.*)\.)?(?P<first>(?:-?\d+)?):(?P<last>(?:-?\d+)?)")
"""``"2:"``, ``":-1"``, or ``"classifier.1:4"``."""


@dataclass(frozen=True)
class Part:
    """A part of a network: a module of it, or some modules of a `Sequential` that follow each other.

    Attributes
    ----------
    name
        By which it is spoken of: "2:", "head".
    owner
        The path of the module that has the part as its children; "" is the network itself.
    children
        Their names; none: the part is the whole network.
    """

    name: str
    owner: str
    children: tuple[str, ...]

    def of(self, network: torch.nn.Module) -> torch.nn.Module:
        """The part of a network as one module, which shares the network's parameters."""
        if not self.children:
            return network
        modules = [getattr(network.get_submodule(self.owner), child) for child in self.children]
        return modules[0] if len(modules) == 1 else torch.nn.Sequential(*modules)

    def first_module(self, network: torch.nn.Module) -> torch.nn.Module:
        """The module of a network that is called with what the part is given."""
        return getattr(network.get_submodule(self.owner), self.children[0]) if self.children else network

    def last_module(self, network: torch.nn.Module) -> torch.nn.Module:
        """The module of a network that gives what the part gives."""
        return getattr(network.get_submodule(self.owner), self.children[-1]) if self.children else network

    def comes_last(self, network: torch.nn.Module) -> bool:
        """Whether the last of a network's modules, in the order in which it has them, belongs to the part."""
        *_, last = network.modules()
        return any(one is last for one in self.last_module(network).modules())

    def replaced(self, network: torch.nn.Module, by: torch.nn.Module) -> torch.nn.Module:
        """A copy of a network with another module in place of the part; it shares nothing with the network."""
        if not self.children:
            return by
        result = copied(network)
        owner = result.get_submodule(self.owner)
        first, *others = self.children
        owner._modules[first] = by
        for child in others:
            del owner._modules[child]
        return result


def restored(network: object, state: object) -> torch.nn.Module:
    """A copy of a network in which decoupled modules are where a saved state has them."""
    if not isinstance(network, torch.nn.Module):
        raise SettingError(f"network must be a torch.nn.Module, got {shown(network)}.")
    if not isinstance(state, Mapping):
        raise SettingError(f"state must be the state_dict of a compressed network, got {shown(state)}.")
    paths = [key.removesuffix("_extra_state") for key in map(str, state) if key.endswith("_extra_state")]
    paths = [path for path in paths if f"{path}W0" in state]
    if not paths:
        raise SettingError("state has no module of ub.networks: give the state_dict of a compressed network.")
    result = network
    try:
        for path in paths:
            module = from_extra_state(state[f"{path}_extra_state"]).to(state[f"{path}W0"].dtype)
            owner, _, child = path[:-1].rpartition(".")
            part = Part(path, owner, module.stands_for or ((child,) if child else ()))
            part.of(result)
            result = part.replaced(result, module)
        result.load_state_dict(state)
    except (AttributeError, RuntimeError) as error:
        raise SettingError(
            f"state does not fit the network, whose use of it {deed(error)}: give a network of the kind that was "
            "compressed, as it was before."
        ) from error
    return result


WHOLE = Part("", "", ())
"""All of a network."""


def copied(network: torch.nn.Module) -> torch.nn.Module:
    """A copy of a network; of what pruning and weight norm keep of the last call, without its history."""
    values = [value for one in network.modules() for value in vars(one).values() if isinstance(value, torch.Tensor)]
    try:
        return copy.deepcopy(network, {id(value): value.detach().clone() for value in values})
    except Exception as error:
        raise SettingError(
            f"The network cannot be copied: copy.deepcopy(network) {deed(error)}. Give one without what cannot be."
        ) from error


def check_apart(parts: Sequence[Part]) -> None:
    """Raise an error where parts have modules in common: one is gone once the other is replaced."""
    paths = [[".".join(filter(None, (part.owner, child))) for child in part.children or ("",)] for part in parts]
    for (one, inside), (other, around) in permutations(zip(parts, paths, strict=True), 2):
        if any(a == b or not b or a.startswith(f"{b}.") for a in inside for b in around):
            raise SettingError(f"The parts {one.name!r} and {other.name!r} have modules in common: give others.")


def find_part(network: object, part: object) -> Part:
    """The part of a network that a name, a slice, a number or the module itself says."""
    if not isinstance(network, torch.nn.Module):
        raise SettingError(f"network must be a torch.nn.Module, got {shown(network)}.")
    if isinstance(network, torch.jit.ScriptModule):
        raise SettingError("network is scripted, and has no parts that can be replaced: compress it before torch.jit.")
    if isinstance(part, torch.nn.Module):
        run = run_of(part, network)
        if run is not None:
            return run
        part = name_of(part, network)
    text = spelled(part)
    found = SLICE.fullmatch(text)
    if text == ":" and not isinstance(network, torch.nn.Sequential):
        return WHOLE
    if found is not None:
        return part_of_sequential(network, text, found["owner"] or "", found["first"], found["last"])
    if text == "":
        return WHOLE
    if re.fullmatch(r"-?\d+", text) and isinstance(network, torch.nn.Sequential):
        text = list(network._modules)[int(text)] if -len(network) <= int(text) < len(network) else text
    owner, _, child = text.rpartition(".")
    try:
        network.get_submodule(text)
    except AttributeError:
        raise SettingError(
            f"The network has no part {shown(part)}: give one of {names(network)}, or, of a Sequential, some modules "
            'that follow each other, such as "2:" or "head.1:3".'
        ) from None
    return Part(text, owner, (child,))


def run_of(part: torch.nn.Module, network: torch.nn.Module) -> Part | None:
    """A slice of a `Sequential` of a network, as `network[2:]` is one: a new module around the same ones."""
    if not isinstance(part, torch.nn.Sequential) or not len(part) or any(one is part for one in network.modules()):
        return None
    wanted = list(part)
    for path, owner in network.named_modules():
        if isinstance(owner, torch.nn.Sequential):
            every, children = list(owner), tuple(owner._modules)
            for first in range(len(every) - len(wanted) + 1):
                if all(a is b for a, b in zip(every[first:], wanted, strict=False)):
                    last = first + len(wanted)
                    return Part(f"{path}.{first}:{last}".lstrip("."), path, children[first:last])
    return None


def name_of(module: torch.nn.Module, network: torch.nn.Module) -> str:
    """The name of a module in a network."""
    for name, one in network.named_modules():
        if one is module:
            return str(name)
    raise SettingError(
        f"The {type(module).__name__} that was given as part is none of the network's modules: give one of them, or "
        f"its name, one of {names(network)}."
    )


def spelled(part: object) -> str:
    """A part as text, such as "2:"."""
    if isinstance(part, bool) or not isinstance(part, str | int | slice):
        raise SettingError(f'part must be a module, its name, or a slice such as "2:", got {shown(part)}.')
    if isinstance(part, slice):
        if part.step not in (None, 1):
            raise SettingError(f"A part has modules that follow each other: give a slice without step, got {part}.")
        return ":".join("" if end is None else str(end) for end in (part.start, part.stop))
    return str(part)


def part_of_sequential(network: torch.nn.Module, name: str, path: str, first: str, last: str) -> Part:
    """Some modules of a `Sequential` that follow each other."""
    try:
        owner = network.get_submodule(path)
    except AttributeError:
        owner = None
    if not isinstance(owner, torch.nn.Sequential):
        what = f"The module {path!r}" if path else "The network"
        is_what = "is not there" if owner is None else f"is a {type(owner).__name__}"
        raise SettingError(
            f"{what} {is_what}, and {name!r} needs a Sequential: give the name of a module, one of {names(network)}."
        )
    every = list(owner._modules)
    children = tuple(every[slice(int(first) if first else None, int(last) if last else None)])
    if not children:
        raise SettingError(f"The part {name!r} has no modules: there are {len(every)}, counted from 0.")
    return Part(name, path, children)


def names(network: torch.nn.Module) -> str:
    """The names of the modules of a network, the first few."""
    every = [name for name, _ in network.named_modules() if name]
    few = ", ".join(every[:12])
    return f"{few}, …" if len(every) > 12 else few or "no module: it has none"


def count_numbers(module: torch.nn.Module) -> int:
    """How many parameters a module has, each counted once, trained or not."""
    return sum(parameter.numel() for parameter in module.parameters())


def device_and_type(module: torch.nn.Module) -> tuple[Any, Any]:
    """Where a module computes, and in which type: those of its first parameter of floating point."""
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.get_default_dtype()
