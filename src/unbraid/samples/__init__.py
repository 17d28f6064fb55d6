"""A problem in a solver's units: what the linear steps work on, through sums over blocks of samples.

Solvers ask a `SampleSet` for sums Σ_blocks function(block, …) and for a few numbers about all samples, and never for
an array over all of them. A block is a `Samples`: arrays in memory. Few samples are one block, and then the
whole set is that block; many are `Streamed` from where they lie.
"""

from unbraid.samples.in_memory import AtSamples, Samples
from unbraid.samples.sample_set import SampleSet
from unbraid.samples.scaling import Scaling
from unbraid.samples.streamed import Streamed, sample_set

__all__ = ["AtSamples", "SampleSet", "Samples", "Scaling", "Streamed", "sample_set"]
