"""How well networks agree with another, on inputs that none was fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from unbraid.errors import DataError
from unbraid.networks.compressing.coordinates import Outputs
from unbraid.networks.compressing.measures import Agreement, agreement, outputs_of
from unbraid.networks.compressing.parts import WHOLE, Part
from unbraid.networks.compressing.samples import Activations, are_classes, batches_of, check_classes, joined


@dataclass(frozen=True)
class Comparison:
    """A reference network and held-out inputs, on which other networks are judged: those with a part replaced.

    Attributes
    ----------
    network, part
        The network that the inputs are given to, and its part; where samples were given as activations, the network is
        the part, and the part all of it.
    inputs, labels
        As the network takes them; labels where there are any.
    whole
        Whether its outputs are those of the user's network, which labels speak of.
    classes
        Whether outputs stand for classes, the largest being the decision.
    """

    network: torch.nn.Module
    part: Part
    inputs: torch.Tensor
    labels: torch.Tensor | None
    whole: bool
    classes: bool = False

    @cached_property
    def wanted(self) -> torch.Tensor:
        """The outputs of the original."""
        return outputs_of(self.network, self.inputs)

    def are_classes(self, labels: torch.Tensor | None) -> bool:
        """Whether labels say which of the network's outputs should be the largest; an error where they cannot."""
        if labels is None or not self.whole or not are_classes(labels) or not self.several_outputs:
            return False
        check_classes(labels, outputs_of(self.network, self.inputs[:1]).shape[1])
        return True

    @property
    def several_outputs(self) -> bool:
        """Whether the network gives vectors of more than one entry, of which one can be the largest."""
        out = outputs_of(self.network, self.inputs[:1])
        return bool(out.ndim == 2 and out.shape[1] > 1)

    def agreement(self, network: torch.nn.Module, wanted: torch.Tensor | None = None) -> Agreement:
        """That of another network; `wanted` are the outputs of the original, where they are not those of this one."""
        wanted = self.wanted if wanted is None else wanted
        labels = self.labels if self.are_classes(self.labels) else None
        return agreement(outputs_of(network, self.inputs), wanted, self.classes, labels)

    def on(self, data: object) -> Comparison:
        """The same on other inputs, with labels or without."""
        several = list(batches_of(data, self.network, np.random.default_rng(0)))
        if not any(len(one.x) for one in several):
            raise DataError("There are no inputs to compare networks on.")
        y = [one.y for one in several if one.y is not None]
        labels = joined(y) if len(y) == len(several) else None
        inputs = joined([one.x for one in several])
        outputs_of(self.network, inputs[:1])
        return replace(self, inputs=inputs, labels=labels, classes=self.classes or self.are_classes(labels))

    def ends_with_part(self) -> bool:
        """Whether what the part gives is what the network does."""
        caught: list[torch.Tensor] = []
        last = self.part.last_module(self.network)
        handle = last.register_forward_hook(lambda _, __, out: caught.append(out.clone()))
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
    inputs, labels = activations.inputs, activations.labels
    if activations.given == "inputs":
        plain = Comparison(network, part, inputs, labels, whole=True)
        ends = plain.ends_with_part()
    else:
        ends = part.comes_last(network)
        plain = Comparison(part.of(network), WHOLE, inputs, labels, whole=ends)
    by_labels = plain.are_classes(labels)
    kind: Outputs = outputs if outputs is not None else "softmax" if by_labels and ends else "values"
    return replace(plain, classes=by_labels or (plain.several_outputs and ends and kind != "values")), kind
