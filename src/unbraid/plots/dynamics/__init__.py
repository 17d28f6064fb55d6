"""Pictures of dynamic models: courses, spectra, poles, frequency responses, curves."""

from unbraid.plots.dynamics.course import course
from unbraid.plots.dynamics.curves import curves
from unbraid.plots.dynamics.linear import frequency_response, poles
from unbraid.plots.dynamics.simulated import simulated
from unbraid.plots.dynamics.spectra import spectra

__all__ = ["course", "curves", "frequency_response", "poles", "simulated", "spectra"]
