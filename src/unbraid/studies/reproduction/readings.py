"""How unclear points of the paper are read, and the variants that run side by side."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from unbraid.errors import SettingError, check_number, check_whole, shown
from unbraid.methods import AlternatingMethod, dejonghe2025

VARIANTS = {
    "printed": "CMTF-BSD as printed",
    "anchored": "CMTF-BSD, anchored step",
    "default": "unbraid's default",
}
"""What runs side by side, and how it is called in figures."""


@dataclass(frozen=True)
class Readings:
    """How the unclear points of the paper are read.

    Attributes
    ----------
    coupling
        λ. The paper: "typically set to a fixed low value, 0.01 or 0.1".
    sweeps
        How many; the paper does not say. All of them are made.
    box
        Samples of the monotone system come from U(-box, box); the paper does not say, and has 1.5 for f_trig.
    degree_of
        Whose degree d is: that of the "function" g, or of the "spline" it is represented by. They differ in the
        monotone experiment, where the spline represents the slope g'.
    """

    coupling: float = 0.01
    sweeps: int = 300
    box: float = 1.5
    degree_of: Literal["function", "spline"] = "function"

    def __post_init__(self) -> None:
        check_number("coupling", self.coupling, 0.0)
        check_whole("sweeps", self.sweeps, 1)
        check_number("box", self.box, 0.0)
        if self.box == 0.0:
            raise SettingError("box must be above 0, got 0.")
        if self.degree_of not in ("function", "spline"):
            raise SettingError(f"degree_of must be 'function' or 'spline', got {shown(self.degree_of)}.")

    def settings(self) -> dict[str, Any]:
        """The readings by name, as plain numbers and texts."""
        return asdict(self)

    def sentences(self, experiment: str = "all") -> list[str]:
        """How the paper was read, in sentences, for the results of "trig", "monotone" or "all" experiments."""
        general = [
            f'λ = {self.coupling:g} in both variants of CMTF-BSD (the paper: "a fixed low value, 0.01 or 0.1"); '
            "unbraid's default has its own, 0.1.",
            f"{self.sweeps} sweeps, all of them made (the paper gives no number), from one random start a run; "
            "unbraid's default has 16 starts and its own stopping rules.",
            "Inputs and outputs are brought to balanced units inside, in all variants.",
        ]
        monotone = [
            f"Samples of the monotone system: U(-{self.box:g}, {self.box:g}), S = 100 (the paper does not say; "
            "f_trig has U(-1.5, 1.5), S = 100).",
            "d is the degree of g; in the monotone experiment, d = 4, slopes are cubic."
            if self.degree_of == "function"
            else "d is the degree of the spline; in the monotone experiment, d = 4, slopes are quartic and g quintic.",
            "The monotone system's g3 is the logistic 1/(1 + exp(-u)): as printed, with a minus sign, it has a pole "
            "and decreases.",
        ]
        return general if experiment == "trig" else general + monotone


def method_of(variant: str, readings: Readings) -> AlternatingMethod | None:
    """The method of a variant, to be run from one start; None for the default solver, with its 16."""
    if variant == "default":
        return None
    return dejonghe2025(readings.coupling, readings.sweeps, tolerance=0.0, anchored=variant == "anchored")
