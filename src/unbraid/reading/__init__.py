"""Samples from files, one module a format, behind two interfaces (`sources`), and predictions to files.

`read_problem` is the way in, `predictions.write_predictions` the way out. May import `data` and what lies below.
"""

from unbraid.reading.problems import read_points, read_problem
from unbraid.reading.samples import Points, Samples

__all__ = ["Points", "Samples", "read_points", "read_problem"]
