"""What can stand in a file of MATLAB or Octave where an array of real numbers is wanted, with advice on each."""

from __future__ import annotations

from unbraid.reading.sources import Other

STRUCT_ARRAY = Other("a struct array", "save one of its structs, or a matrix of its numbers")
CELL = Other("a cell array", "save a matrix of its numbers")
MATLAB_OBJECT = Other("an object", "save a matrix of its numbers")
TEXT = Other("text", "save numbers")
SPARSE = Other("a sparse matrix", "save what full makes of it")
COMPLEX = Other("complex", "save its real part if the other is zero")
HANDLE = Other("a function handle", "save a matrix of its values")
RANGE = Other("a range", "save what full makes of it")
EMPTY = Other("empty", "save a full array of numbers")
LINK = Other("a link", "save the numbers in this file")
ELSEWHERE = Other("stored in other files, which are not read", "save the numbers in this file")
