"""Qiju: the record layer for coding agents. `qiju.trajectory` is the Python reading API; the command is `qiju`."""

__version__ = "1.0.0"
