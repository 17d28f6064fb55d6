"""The simulation error of dynamic models, and the steps that lower it."""
