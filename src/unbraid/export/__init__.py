"""Models in other languages: C, ONNX, MATLAB, Python, JSON, LaTeX, SymPy.

`export_model` finds the writer by the file's ending; each writer makes the whole contents of files from a model, most
of them by way of a `Portable` one, and knows nothing of files. May import `results` and what lies below.
"""

from unbraid.export.files import ENDINGS, export_model
from unbraid.export.symbolic import as_sympy

__all__ = ["ENDINGS", "as_sympy", "export_model"]
