"""Numbers in words."""

from __future__ import annotations

import numpy as np

from unbraid.judging.findings import TWICE
from unbraid.plots.labels import RAISED

NUMBER_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
TOGETHER = "\N{NO-BREAK SPACE}"
ROUNDING_ERROR = 1e-6
"""An error in % below which nothing but rounding is left."""


def count_word(count: int) -> str:
    """A count, in words where it is small: 'three', '20'."""
    return NUMBER_WORDS[count] if count < len(NUMBER_WORDS) else str(count)


def share_percent(share: float) -> str:
    """A share in percent: '42 %', '0.31 %'."""
    return in_percent(100.0 * share)


def share_of(share: float, what: str, cancelling: bool) -> str:
    """A share of something, '42 % of what'; of a large one, 'more than twice what', and why where branches cancel."""
    if share <= TWICE:
        return f"{share_percent(share)} of {what}"
    return f"more than twice {what}" + (", as branches cancel" if cancelling else "")


def short_share(share: float) -> str:
    """A share where there is no room for words: '42 %', '> 200 %'."""
    return share_percent(share) if share <= TWICE else f">{TOGETHER}{share_percent(TWICE)}"


def in_percent(value: float) -> str:
    """A number of percent, '42 %', '0.31 %', '3e−7 %', whose parts stay on one line."""
    if not np.isfinite(value):
        return "–"
    if value == 0.0:
        text = "0"
    elif abs(value) < 1e-3:
        text = f"{value:.0e}" if value < ROUNDING_ERROR else f"{value:.1e}"
    else:
        text = f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"
    return f"{text.replace('e-0', 'e-').replace('-', '−')}{TOGETHER}%"


def signed(value: float) -> str:
    """A number with its sign, '+0.71', '−1.20', the minus a real one."""
    return (f"{value:+.2f}" if 0.095 <= abs(value) < 9.995 else f"{value:+.2g}").replace("-", "−")


def small(value: float) -> str:
    """A number that may be tiny, '3.3 · 10⁻⁶', '0.021'."""
    if value == 0.0 or not np.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.3g}".replace("-", "−")
    mantissa, exponent = f"{value:.1e}".split("e")
    raised = str(int(exponent)).translate(RAISED)
    return f"{mantissa}{TOGETHER}·{TOGETHER}10{raised}".replace("-", "−")


def listed_words(names: list[str], most: int) -> str:
    """Names in a row, 'a, b and c', and of many the first: 'a, b, c and 17 more'."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plain_number(value: float) -> str:
    """A number in the user's units, '−2.94', '1.2e5', for ranges and sizes."""
    return f"{value:.3g}".replace("-", "−")
