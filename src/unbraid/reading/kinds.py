"""Which kind of file this is, from how its name ends and how its bytes begin; the two must not contradict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from unbraid.errors import FileError
from unbraid.reading.delimited import open_delimited
from unbraid.reading.hdf5 import open_hdf5
from unbraid.reading.matlab5 import HEADER, open_matlab5
from unbraid.reading.numpy_files import open_archive, open_folder, open_single
from unbraid.reading.parquet import open_parquet
from unbraid.reading.sources import ArraySource, Table
from unbraid.runtime.files import reason

Opener = Callable[[Path], AbstractContextManager[ArraySource] | AbstractContextManager[Table]]
HDF5 = b"\x89HDF\r\n\x1a\n"
USER_BLOCK = 512
"""Where HDF5 begins in MATLAB's files."""


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    name: str
    suffixes: tuple[str, ...]
    begins: Callable[[bytes], bool]
    """Whether these can be the first bytes."""
    opener: Opener


def is_matlab5(start: bytes) -> bool:
    """Whether a header ends in version 1 and one of the two byte orders."""
    return start[HEADER - 4 : HEADER] in (b"\x00\x01IM", b"\x01\x00MI")


def is_hdf5(start: bytes) -> bool:
    """Whether HDF5 begins here, or after MATLAB's header."""
    return start.startswith(HDF5) or start[USER_BLOCK:].startswith(HDF5)


KINDS = (
    Kind("an .npz file", (".npz",), lambda start: start.startswith(b"PK"), open_archive),
    Kind("an .npy array", (".npy",), lambda start: start.startswith(b"\x93NUMPY"), open_single),
    Kind("a MATLAB file", (".mat",), is_matlab5, open_matlab5),
    Kind("an HDF5 or MATLAB v7.3 file", (".mat", ".h5", ".hdf5"), is_hdf5, open_hdf5),
    Kind("a Parquet file", (".parquet", ".pq"), lambda start: start.startswith(b"PAR1"), open_parquet),
)
VAGUE = ".dat"
"""An ending that promises nothing: a table where it is text, and else what the bytes say."""
TABLE = (".csv", ".tsv", ".txt", VAGUE)
ACCEPTED = "a .npz, .mat, .h5, .csv or .parquet file, or a folder of .npy files"
ELSE = {
    b"\x80": "a Python pickle, which is never loaded",
    b"\x1f\x8b": "compressed with gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first",
    b"\xff\xfe": "text in UTF-16: save it as UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as UTF-8",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save it as .csv",
}
"""Other beginnings that can be told."""
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")


def opener(path: Path) -> Opener:
    """What opens the file, or a `FileError` about what it is instead."""
    if path.is_dir():
        return open_folder
    start, suffix = first_bytes(path), path.suffix.lower()
    if suffix in SPREADSHEETS:
        raise FileError(f"{path} is a spreadsheet: save it as .csv.")
    if suffix in TABLE and is_text(start):
        return open_delimited
    content = next((kind for kind in KINDS if kind.begins(start)), None)
    known = suffix in TABLE or any(suffix in kind.suffixes for kind in KINDS)
    if content is not None:
        if known and suffix not in (*content.suffixes, VAGUE):
            raise FileError(
                f"{path} is {content.name}, though its name ends in {suffix}: rename it to end in "
                f"{content.suffixes[0]} if that is what it should be."
            )
        return content.opener
    looks = next((f" It is {text}." for begin, text in ELSE.items() if start.startswith(begin)), "")
    if not known or suffix == VAGUE:
        raise FileError(f"{path} is not a file that can be read: give {ACCEPTED}.{looks}")
    if suffix == ".mat" and not looks:
        looks = " MATLAB's files are read in versions 5 to 7.3: save it again with -v7."
    raise FileError(f"{path} does not begin as a {suffix} file does: it is damaged or something else.{looks}")


def first_bytes(path: Path) -> bytes:
    """How a file begins."""
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is a device or a pipe: save the data in a file.")
    try:
        with path.open("rb") as file:
            start = file.read(USER_BLOCK + len(HDF5))
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise FileError(f"{path!s:.200} cannot be read: {reason(error)}.") from error
    if not start:
        raise FileError(f"{path} is empty.")
    return start


def is_text(start: bytes) -> bool:
    """Whether there are no control characters but those that end lines and fields."""
    return not any(byte < 32 and byte not in b"\t\n\r\f" for byte in start)
