"""Which rank and settings to use: candidates compared on held-out samples, or by what the data support.

May import `fitting` and what lies below.
"""

from unbraid.selection.answer import Selection
from unbraid.selection.select import select
from unbraid.selection.validation import Row, Settings

__all__ = ["Row", "Selection", "Settings", "select"]
