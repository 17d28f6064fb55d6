"""A page about a fit: one self-contained HTML file, and the small view of a notebook.

Nothing here computes; matplotlib and jinja2, of the extra `report`, are imported when a page is made. May import
`plots` and what lies below.
"""

from unbraid.report.notebook import notebook_view
from unbraid.report.templates import check_packages
from unbraid.report.write import check_ending, write_report

__all__ = ["check_ending", "check_packages", "notebook_view", "write_report"]
