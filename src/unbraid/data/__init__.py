"""What goes in: problems, their samples in blocks and in a solver's units, and samples of functions.

Solvers ask a `SampleSet` for sums Σ_blocks function(block, …) and for a few numbers about all samples, and never for an
array over all of them. A block is a `Samples`: arrays in memory. Few samples are one block, and then the whole set is
that block; many are `Streamed` from where they lie. May import `bases` and what lies below.
"""
