"""Dynamic models: what comes out of an identification, simulated, kept in files. Know nothing of fitting."""
