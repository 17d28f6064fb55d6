"""Models in files: one description of a model, and two containers for it, `.npz` archives and JSON texts."""
