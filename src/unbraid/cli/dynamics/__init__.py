"""Commands for dynamic systems: `unbraid identify` and `unbraid simulate`."""
