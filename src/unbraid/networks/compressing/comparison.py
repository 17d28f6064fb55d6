"""How well networks agree with another, on inputs that none was fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from unbraid.errors import DataError
from unbraid.networks.compressing.coordinates import Outputs
from unbraid.networks.compressing.measures import Agreement, agreement, outputs_of
from unbraid.networks.compressing.parts import Part, find_part
from unbraid.networks.compressing.samples import Activations, batches_of


@dataclass(frozen=True)
class Comparison:
    """Networks compared with one, on inputs: how well one with a part replaced does what it did before.

    Attributes
    ----------
    network, part
        The network that the inputs are given to, and its part; where samples were given as activations, the network is
        the part, and the part all of it.
    inputs, labels
        As the network takes them; labels where there are any.
    classes
        Whether outputs stand for classes, the largest being the decision.
    """

    network: torch.nn.Module
    part: Part
    inputs: torch.Tensor
    labels: torch.Tensor | None
    classes: bool

    @cached_property
    def wanted(self) -> torch.Tensor:
        """The outputs of the original."""
        return outputs_of(self.network, self.inputs)

    @property
    def several_outputs(self) -> bool:
        """Whether the network gives vectors of more than one entry, of which one can be the largest."""
        out = outputs_of(self.network, self.inputs[:1])
        return bool(out.ndim == 2 and out.shape[1] > 1)

    def agreement(self, network: torch.nn.Module, wanted: torch.Tensor | None = None) -> Agreement:
        """That of another network; `wanted` are the outputs of the original, where they are not those of this one."""
        wanted = self.wanted if wanted is None else wanted
        return agreement(outputs_of(network, self.inputs), wanted, self.classes, self.labels)

    def on(self, data: object) -> Comparison:
        """The same on other inputs, with labels or without."""
        several = list(batches_of(data, self.network, np.random.default_rng(0)))
        if not several:
            raise DataError("There are no inputs to compare networks on.")
        y = [one.y for one in several if one.y is not None]
        labels = torch.cat(y) if len(y) == len(several) else None
        return replace(self, inputs=torch.cat([one.x for one in several]), labels=labels)

    def ends_with_part(self) -> bool:
        """Whether what the part gives is what the network does."""
        caught: list[torch.Tensor] = []
        last = self.part.ends_with(self.network)
        handle = last.register_forward_hook(lambda _, __, out: caught.append(out))
        try:
            out = outputs_of(self.network, self.inputs[:4])
        finally:
            handle.remove()
        return bool(caught and caught[-1].shape == out.shape and torch.equal(caught[-1], out))

    def replaced(self, by: torch.nn.Module) -> torch.nn.Module:
        """The network with another module in place of the part."""
        return self.part.replaced(self.network, by)


def compare(
    network: torch.nn.Module, part: Part, activations: Activations, outputs: Outputs | None
) -> tuple[Comparison, Outputs]:
    """The comparison with a network on what is held out, and what the outputs of its part are.

    Outputs are classes where labels say so, or where the part is the network's end and its outputs are said to be
    logits.
    """
    runs, within = (network, part) if activations.given == "inputs" else (part.of(network), find_part(network, ""))
    plain = Comparison(runs, within, activations.inputs, activations.labels, classes=False)
    ends, several = plain.ends_with_part(), plain.several_outputs
    by_labels = activations.classes and several
    kind: Outputs = outputs if outputs is not None else "logits" if by_labels and ends else "values"
    return replace(plain, classes=by_labels or (several and ends and kind != "values")), kind
