"""Names of inputs and outputs that mean harm to a program in whose comments they stand."""

from __future__ import annotations

HOSTILE = [
    "*/ int evil; /*",
    "/* nested",
    "// line \\",
    "ends in a backslash \\",
    "trigraph ??/",
    "??/\nint evil;",
    '"""\nimport os',
    "'''",
    "\\x22\\N{BULLET}",
    "one\ntwo\r\nthree\x0bfour\x0cfive\x85six\u2028seven",
    "%{",
    "%}",
    "...",
    "#{",
    "# -*- coding: utf-7 -*-",
    "vim: set modeline:",
    "\x00\x01\x1b[31m\x7f",
    "\u202e\u2066 turned \u2069",
    "x" * 1_000_000,
    "\ud800 alone",
    "ω μ 速度 𝐱",
    "{braces} ${name} $real %s {0}",
    "<% <: ??= ??< %:",
    "",
    " ",
]


def with_numbered(names: list[str]) -> list[str]:
    """Names that are all different, as those of a model must be."""
    return [f"{name}{k}" for k, name in enumerate(names)]
