"""The systems: each file has a list SYSTEMS."""
