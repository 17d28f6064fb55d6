"""Numbers in words."""

from __future__ import annotations

import numpy as np

from unbraid.selection.diagnostics import TWICE

NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
TOGETHER = "\N{NO-BREAK SPACE}"
EXACT = 1e-6
"""An error in % below which nothing but rounding is left."""


def number(count: int) -> str:
    """'three', '20'."""
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


def percent(share: float) -> str:
    """'42 %', '0.31 %', from a share."""
    return in_percent(100.0 * share)


def share_of(share: float, what: str, cancelling: bool) -> str:
    """'42 % of what', and of a share whose number says nothing, 'more than twice what', with the reason if it is."""
    if share <= TWICE:
        return f"{percent(share)} of {what}"
    return f"more than twice {what}" + (", as branches cancel" if cancelling else "")


def short_share(share: float) -> str:
    """'42 %', '> 200 %', where there is no room for words."""
    return percent(share) if share <= TWICE else f">{TOGETHER}{percent(TWICE)}"


def in_percent(value: float) -> str:
    """'42 %', '0.31 %', '3e−7 %', from a number of percent; its parts stay on one line."""
    if not np.isfinite(value):
        return "–"
    if value == 0.0:
        text = "0"
    elif value < 1e-3:
        text = f"{value:.0e}" if value < EXACT else f"{value:.1e}"
    else:
        text = f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"
    return f"{text.replace('e-0', 'e-').replace('-', '−')}{TOGETHER}%"


def signed(value: float) -> str:
    """'+0.71', '−1.20', with a real minus."""
    return (f"{value:+.2f}" if 0.095 <= abs(value) < 9.995 else f"{value:+.2g}").replace("-", "−")


def small(value: float) -> str:
    """'3.3 · 10⁻⁶', '0.021'."""
    if value == 0.0 or not np.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.3g}".replace("-", "−")
    mantissa, exponent = f"{value:.1e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}{TOGETHER}·{TOGETHER}10{raised}".replace("-", "−")


def listed_words(names: list[str], most: int) -> str:
    """'a, b and c', 'a, b, c and 17 more'."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plain(value: float) -> str:
    """'−2.94', '1.2e5', for ranges and sizes in the user's units."""
    return f"{value:.3g}".replace("-", "−")
