"""How samples are cut, and how many are kept."""

BLOCK_ENTRIES = 1 << 16
"""Entries of (r, samples) in a block: of longer ones more leaves the cache, of shorter ones calls take much time."""
LEAST_BLOCK = 256
"""Samples in a block at least: below, calling takes longer than computing."""
KNOT_SAMPLES = 1 << 11
"""So many samples, and the ends of the range of all, say where knots go."""
KEPT_ENTRIES = 1 << 20
"""Entries of (starts, r, S) up to which branches at the samples are remembered until others are asked for."""
IN_MEMORY_ENTRIES = 1 << 22
"""Entries of X and F up to which they are kept in the solver's units: 32 MB of float64."""
WRITTEN_OUT_ENTRIES = 1 << 18
"""Entries of a block up to which the scales of its rows are written out."""


def block_length(width: int) -> int:
    """How many samples a block has for so many branches."""
    return max(LEAST_BLOCK, BLOCK_ENTRIES // width)


def slices(samples: int, length: int) -> list[slice]:
    """Slices of about equal length, at most so long, that cover the samples."""
    count = -(-samples // length)
    return [slice(samples * k // count, samples * (k + 1) // count) for k in range(count)]
