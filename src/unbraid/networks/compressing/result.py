"""A compressed network: what was replaced, how well it agrees with the original, training, and a way out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from unbraid.data.functions.hosts import quiet
from unbraid.errors import (
    MissingDependencyError,
    SettingError,
    as_generator,
    check_callback,
    check_number,
    check_whole,
    install_hint,
    shown,
)
from unbraid.networks.compressing.comparison import Comparison
from unbraid.networks.compressing.finetuning import (
    RATE,
    Feasible,
    Loss,
    Objective,
    Trained,
    check_loss,
    prepare,
    train,
)
from unbraid.networks.compressing.measures import BATCHES, Agreement, Cost
from unbraid.networks.compressing.part_fitting import Replacement
from unbraid.networks.compressing.parts import WHOLE, Part, copied, count_numbers
from unbraid.networks.compressing.samples import Examples
from unbraid.networks.conversion import model as model_of
from unbraid.networks.decoupled_module import DecoupledModule
from unbraid.results.fit import Fit, errors_on
from unbraid.results.model import DecoupledModel
from unbraid.runtime.files import replacing

GAINED_NOTHING = (
    "Training gained nothing on what was held out, so the network is as it was before: give a smaller rate, more "
    "epochs or data, or a larger rank."
)
"""Said of training that no epoch of which was better than its beginning."""


@dataclass(frozen=True)
class Step:
    """A rank that was tried: what the part has of numbers then, how many samples it was fitted to, what was lost."""

    part: str
    rank: int
    numbers: int
    samples: int
    agreement: Agreement


@dataclass(frozen=True)
class Table:
    """Rows of a table; printed, with heads."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.heads))]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        )


@dataclass(eq=False, repr=False)
class Compression:
    """A network with parts replaced by decoupled models.

    Attributes
    ----------
    network
        The network, with trainable modules in place of its parts. It shares nothing with the original.
    original
        The network that was given.
    parts, replacements
        What was replaced, and by what: samples, fit and λ of each.
    comparison
        With the original, on inputs that are held out.
    path
        The ranks that were tried, with numbers and what was lost.
    notes
        What should be known that the figures do not say.
    replaced
        The network as it was before it was trained on.
    losses
        On what was held out while it was trained: before, and after each epoch.
    """

    network: torch.nn.Module
    original: torch.nn.Module
    parts: tuple[Part, ...]
    replacements: tuple[Replacement, ...]
    comparison: Comparison
    path: tuple[Step, ...]
    notes: tuple[str, ...]
    replaced: torch.nn.Module
    losses: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        network: torch.nn.Module,
        original: torch.nn.Module,
        parts: Sequence[Part],
        replacements: Sequence[Replacement],
        comparison: Comparison,
        path: Sequence[Step],
        notes: Sequence[str],
    ) -> Compression:
        """The result for a network whose parts have been replaced; a copy is kept, for the table."""
        before = copied(network)
        different = tuple(dict.fromkeys(notes))
        return cls(network, original, tuple(parts), tuple(replacements), comparison, tuple(path), different, before)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C has ended the search; then parts may be left as they were."""
        return any(one.interrupted for one in self.replacements)

    @property
    def fits(self) -> tuple[Fit, ...]:
        """The fit of each part, with the model as it is now."""
        return tuple(self._fit(k) for k in range(len(self.parts)))

    @property
    def fit(self) -> Fit:
        """The fit of the part; of several, the first."""
        return self._fit(0)

    @property
    def models(self) -> tuple[DecoupledModel, ...]:
        """The models of what the parts are given, and give, as they are now."""
        return tuple(model_of(one) for one in self.modules)

    @property
    def model(self) -> DecoupledModel:
        """The model of the part; of several, the first."""
        return self.models[0]

    @property
    def modules(self) -> tuple[DecoupledModule, ...]:
        """The modules that parts were replaced by."""
        return tuple(part.of(self.network) for part in self._places())

    def _places(self) -> list[Part]:
        """Where in the network the replaced parts are: in its own first child each."""
        return [replace(part, children=part.children[:1]) for part in self.parts]

    def _fit(self, k: int) -> Fit:
        """The fit of a part; trained on, with errors as they are now."""
        found = self.replacements[k]
        if not self.losses or found.fit.problem is None:
            return found.fit
        model = found.coordinates.reduced(self.models[k])
        jacobian_error, output_errors = errors_on(found.fit.problem, model)
        notes = ("The model was trained on after the fit: errors are those of now, all else is that of the fit.",)
        return replace(
            found.fit,
            model=model,
            jacobian_error=jacobian_error,
            output_errors=output_errors,
            notes=(*notes, *found.fit.notes),
            held_out=None,
            smoothing=None,
        )

    def finetune(
        self,
        data: object,
        epochs: int = 5,
        loss: Loss = "distil",
        *,
        what: Trained = "all",
        rate: float = RATE,
        held_out: object = None,
        patience: int | None = None,
        rng: int | None = 0,
        callback: Callable[[int, float], None] | None = None,
    ) -> Compression:
        """Train the network on, in place; it ends in the best state that held-out data have seen.

        Parameters
        ----------
        data
            (X, y) or X as arrays or tensors, or a loader of batches (x, y) or x. Inputs that `compress` has held out
            are left out, so that the table goes on to tell of inputs that were not trained on.
        epochs
            How many times all data are gone through, at most.
        loss
            "distil": to agree with the original, whose labels are not needed: Kullback and Leibler's divergence for
            classes, else mean squares. "task": cross entropy for labels of classes, else mean squares. Or a function
            of outputs and labels.
        what
            Which parameters are trained: "all", or those of the replaced parts alone, "module".
        rate
            Of Adam, for decoupled modules relative to the size of what is trained; after the first epoch it falls to
            zero along a cosine.
        held_out
            Data to tell when to stop. None: a tenth of arrays and data sets; of other loaders, what `compress` has
            held out.
        patience
            Training ends after more than so many epochs in a row that gain nothing on what is held out. None: it goes
            through all epochs, as most is gained at their end, where the rate falls to zero.
        rng
            A seed, for the order of samples and what is held out.
        callback
            Called after each epoch with its number and the loss on what is held out.

        Returns
        -------
        Compression
            Itself. Ctrl-C ends training with the best state so far; a note says so where no epoch gained anything.
        """
        check_loss(loss)
        if what not in ("all", "module"):
            raise SettingError(f'what must be "all" or "module", got {shown(what)}.')
        check_whole("epochs", epochs, 1)
        if patience is not None:
            check_whole("patience", patience, 0)
        check_callback(callback, "an epoch and its loss")
        check_number("rate", rate, 0.0)
        own = Examples(self.comparison.inputs, self.comparison.labels) if self._runs_whole else None
        ready = prepare(data, held_out, as_generator(rng), own)
        labels = next((one.y for one in ready.held if one.y is not None), None)
        judged = self.comparison if self._runs_whole else self._of_whole(ready.held)
        classes = judged.classes or judged.are_classes(None if labels is None else torch.as_tensor(labels))
        scale = float(judged.wanted.double().var(0).mean())
        objective = Objective(self.original, loss, classes, max(scale, 1e-30))
        feasible = [
            Feasible(module, found.fit.constraints)
            for module, found in zip(self.modules, self.replacements, strict=True)
        ]
        losses = train(
            self.network,
            objective,
            ready,
            feasible,
            epochs=epochs,
            what=what,
            rate=rate,
            patience=patience,
            callback=callback,
            without=None if own is None else own.x,
        )
        self.losses += losses
        gained = min(losses) < losses[0]
        others = tuple(note for note in self.notes if note != GAINED_NOTHING)
        self.notes = others if gained else (*others, GAINED_NOTHING)
        return self

    def _of_whole(self, held: Sequence[Examples]) -> Comparison:
        """The comparison of whole networks on some inputs, where that of the result is one of its part."""
        return replace(self.comparison, network=self.original, part=WHOLE, whole=True).on(held)

    def agreement(self) -> Agreement:
        """How well the network agrees with the original now, on inputs that were held out."""
        return self.comparison.agreement(self._judged(self.network))

    @property
    def _runs_whole(self) -> bool:
        """Whether what is held out are inputs of the network; else they are those of the part."""
        return self.comparison.network is self.original

    def _judged(self, network: torch.nn.Module) -> torch.nn.Module:
        """What of a network runs on what is held out."""
        return network if self._runs_whole else self._places()[0].of(network)

    def table(self, data: object = None) -> Table:
        """Numbers, multiplications, latency, and agreement with the original.

        On inputs that were held out, which the original may have been trained on; or on `data`, of the kind that
        `compress` was given: (X, y) of a test set, say.
        """
        comparison = self.comparison if data is None else self.comparison.on(data)
        networks = {"original": comparison.network, "replaced": self._judged(self.replaced)}
        if self.losses:
            networks["trained"] = self._judged(self.network)
        judged = [comparison.agreement(one) for one in networks.values()]
        costs = [Cost.of(one, comparison.inputs) for one in networks.values()]
        with_labels = judged[0].right is not None
        heads = ["network", "numbers", "multiplications", *(f"ms for {batch}" for batch in BATCHES)]
        heads += (["same class"] if comparison.classes else []) + ["outputs off"] + (["right"] if with_labels else [])
        rows = []
        for name, cost, one in zip(networks, costs, judged, strict=True):
            row = [name, f"{cost.numbers:,}", f"{cost.multiplications:,}"]
            row += [f"{1e3 * cost.seconds[batch]:.3g}" for batch in BATCHES]
            row += [f"{100.0 * one.classes:.2f} %"] if one.classes is not None else []
            row += [f"{100.0 * one.off:.3g} %"]
            row += [f"{100.0 * one.right:.2f} %"] if one.right is not None else []
            rows.append(tuple(row))
        return Table(tuple(heads), tuple(rows))

    def sizes(self) -> Table:
        """The ranks that were tried: numbers of the part, samples fitted to, and what was lost on held-out inputs.

        The rank that was taken is fitted to more samples, as long as that gains; all others to the first ones.
        """
        rows = [
            (one.part, str(one.rank), f"{one.numbers:,}", f"{one.samples:,}", f"{100.0 * one.agreement.loss:.2f} %")
            for one in self.path
        ]
        return Table(("part", "rank", "numbers", "samples", "lost"), tuple(rows))

    def export(self, path: str | PathLike[str]) -> Path:
        """Write the network as ONNX, for batches of any length; the path."""
        if Path(path).suffix != ".onnx":
            raise SettingError(f"A network is written as ONNX: give a path that ends in .onnx, got {str(path)!r}.")
        try:
            import onnxscript  # noqa: F401
        except ImportError:
            raise MissingDependencyError(
                f"ONNX of a network needs onnx and onnxscript: {install_hint('onnx')}."
            ) from None
        if not self._runs_whole:
            raise SettingError(
                "export needs inputs of the network, and compress was given activations of its part: give it inputs, "
                "or give result.network to torch.onnx.export."
            )
        example = self.comparison.inputs[:2]
        network = copied(self.network).eval()
        batch = torch.export.Dim("batch", min=1)
        with torch.no_grad(), quiet(), silenced("torch.onnx"):
            try:
                program = torch.onnx.export(
                    network,
                    (example,),
                    input_names=["x"],
                    output_names=["y"],
                    dynamo=True,
                    verbose=False,
                    dynamic_shapes=({0: batch},),
                )
            except Exception as error:
                raise SettingError(
                    f"PyTorch cannot write this network as ONNX ({type(error.__cause__ or error).__name__}): give "
                    "one without branches on values or detours through NumPy."
                ) from error
        model = program.model_proto
        clear_origins(model)
        with replacing(path) as file:
            file.write(model.SerializeToString())
        return Path(path)

    def __repr__(self) -> str:
        after = sum(map(count_numbers, self.modules))
        before = sum(count_numbers(part.of(self.original)) for part in self.parts)
        judged = self.agreement()
        what = "decisions differ" if self.comparison.classes else "variance are lost"
        ranks = ", ".join(
            f"{part.name or 'all'} by {one.rank} branches" for part, one in zip(self.parts, self.models, strict=True)
        )
        held = f"{len(self.comparison.inputs):,} held-out inputs"
        lost = f"{100.0 * judged.loss:.2f} % of {what}"
        cut = "; the search was interrupted" if self.interrupted else ""
        first = f"Compression({ranks}: {after:,} numbers instead of {before:,}; on {held} {lost}{cut})"
        return "\n".join([first, *(f"  note    {note}" for note in self.notes)])


@contextmanager
def silenced(name: str) -> Iterator[None]:
    """Inside, a logger and those below it tell of errors alone."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def clear_origins(message: Any) -> None:
    """Clear what PyTorch's exporter says of where an ONNX message comes from: stack traces with local paths."""
    for name in ("metadata_props", "doc_string"):
        if name in message.DESCRIPTOR.fields_by_name:
            message.ClearField(name)
    for kind, value in message.ListFields():
        if kind.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                clear_origins(part)
