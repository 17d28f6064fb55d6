"""The version, once: the package, its files and its build all read it here."""

__version__ = "0.1.0"
