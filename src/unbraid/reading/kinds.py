"""Which kind of file this is, from how its name ends and how its bytes begin; the two must not contradict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from unbraid.errors import FileError
from unbraid.reading.delimited import open_delimited
from unbraid.reading.matlab.hdf5 import open_hdf5
from unbraid.reading.matlab.octave_text import START, open_octave_text
from unbraid.reading.matlab.version5 import HEADER, open_matlab5
from unbraid.reading.numpy_files import open_archive, open_folder, open_single
from unbraid.reading.parquet import open_parquet
from unbraid.reading.sources import ArraySource, Table
from unbraid.runtime.files import why_refused

Opener = Callable[[Path], AbstractContextManager[ArraySource] | AbstractContextManager[Table]]
HDF5 = b"\x89HDF\r\n\x1a\n"
USER_BLOCK = 512
"""Where HDF5 begins in MATLAB's files."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes
    ----------
    name
        What to call it in a sentence.
    suffixes
        How the names of such files end, the usual ending first.
    begins
        Whether a file of this kind can begin with these bytes.
    opener
        What opens it.
    """

    name: str
    suffixes: tuple[str, ...]
    begins: Callable[[bytes], bool]
    opener: Opener


def is_matlab5(start: bytes) -> bool:
    """Whether these are the first bytes of a MATLAB file of version 5: a header that ends in version and byte order."""
    return start[HEADER - 4 : HEADER] in (b"\x00\x01IM", b"\x01\x00MI")


def is_hdf5(start: bytes) -> bool:
    """Whether these are the first bytes of an HDF5 file, with MATLAB's header before it or not."""
    return start.startswith(HDF5) or start[USER_BLOCK:].startswith(HDF5)


FILE_KINDS = (
    FileKind("an .npz file", (".npz",), lambda start: start.startswith(b"PK"), open_archive),
    FileKind("an .npy array", (".npy",), lambda start: start.startswith(b"\x93NUMPY"), open_single),
    FileKind("a MATLAB file", (".mat",), is_matlab5, open_matlab5),
    FileKind("an HDF5 or MATLAB v7.3 file", (".mat", ".h5", ".hdf5"), is_hdf5, open_hdf5),
    FileKind("a text file of Octave", (".mat", ".txt"), lambda start: start.startswith(START), open_octave_text),
    FileKind("a Parquet file", (".parquet", ".pq"), lambda start: start.startswith(b"PAR1"), open_parquet),
)
VAGUE_SUFFIX = ".dat"
"""An ending that promises nothing: a table where it is text, and else what the bytes say."""
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", VAGUE_SUFFIX)
READABLE = "a .npz, .mat, .h5, .csv or .parquet file, or a folder of .npy files"
OTHER_STARTS = {
    b"\x80": "a Python pickle, which is never loaded",
    b"\x1f\x8b": "compressed with gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first",
    b"\xff\xfe": "text in UTF-16: save it as UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as UTF-8",
    b"Octave-1-": "a binary file of Octave: save it with -v7, or as text, which Octave does by default",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save it as .csv",
}
"""Files that cannot be read, by their first bytes."""
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")


def find_opener(path: Path) -> Opener:
    """What opens this file, by its name and its first bytes; a `FileError` says what it is where nothing does."""
    if path.is_dir():
        return open_folder
    start, suffix = first_bytes(path), path.suffix.lower()
    if suffix in SPREADSHEETS:
        raise FileError(f"{path} is a spreadsheet: save it as .csv.")
    if suffix in TABLE_SUFFIXES and is_text(start) and not start.startswith(START):
        return open_delimited
    content = next((kind for kind in FILE_KINDS if kind.begins(start)), None)
    known = suffix in TABLE_SUFFIXES or any(suffix in kind.suffixes for kind in FILE_KINDS)
    if content is not None:
        if known and suffix not in (*content.suffixes, VAGUE_SUFFIX):
            raise FileError(
                f"{path} is {content.name}, though its name ends in {suffix}: rename it to end in "
                f"{content.suffixes[0]} if that is what it should be."
            )
        return content.opener
    looks = next((f" It is {text}." for begin, text in OTHER_STARTS.items() if start.startswith(begin)), "")
    if not known or suffix == VAGUE_SUFFIX:
        raise FileError(f"{path} is not a file that can be read: give {READABLE}.{looks}")
    if suffix == ".mat" and not looks:
        looks = " MATLAB's files are read in versions 5 to 7.3: save it again with -v7."
    raise FileError(f"{path} does not begin as a {suffix} file does: it is damaged or something else.{looks}")


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file, as many as tell its kind."""
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is a device or a pipe: save the data in a file.")
    try:
        with path.open("rb") as file:
            start = file.read(USER_BLOCK + len(HDF5))
    except FileNotFoundError:
        raise FileError(f"{path} does not exist.") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise FileError(f"{path!s:.200} cannot be read: {why_refused(error)}.") from error
    if not start:
        raise FileError(f"{path} is empty.")
    return start


def is_text(start: bytes) -> bool:
    """Whether bytes can be text: no control characters but those that end lines and fields."""
    return not any(byte < 32 and byte not in b"\t\n\r\f" for byte in start)
