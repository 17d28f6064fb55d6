"""Models in other languages: C, ONNX, MATLAB, Python, JSON, LaTeX.

`export_model` finds the writer by the file's ending; each writer makes the whole text, or bytes, of a file from a
`Portable` model and knows nothing of files.
"""

from unbraid.export.files import ENDINGS, export_model

__all__ = ["ENDINGS", "export_model"]
