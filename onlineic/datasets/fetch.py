"""Public tables that do not ship with the package: where they are, under which licence, how to know them.

A table is one file, downloaded once into a folder, and never read before its digest is checked.
"""

import hashlib
import os
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from typing import final

import attrs

from onlineic.errors import (
    DigestMismatchError,
    DownloadError,
    InvalidParameterError,
    MissingDataError,
    shown,
)

TIMEOUT = 30.0  # seconds without a byte, after which a download is given up


@final
@attrs.frozen
class Dataset:
    """A public table that can be fetched: one file, known by its digest.

    Attributes:
        name: What `fetch` and `find` call it.
        about: What it holds, in a line.
        records: Number of records.
        path: Its file below the folder of data, parts joined by "/".
        address: Where it is downloaded from. Of a repository a commit is part of it: it goes on meaning one
            file.
        licence: As stated where the file is offered. "none stated" is what it says, not a permission.
        size: Bytes.
        sha256: Digest of the file, in hexadecimal.
    """

    name: str
    about: str
    records: int
    path: str
    address: str
    licence: str
    size: int
    sha256: str


PGM = "https://raw.githubusercontent.com/ryan112358/private-pgm/a07c9f5e4db36a5e831980d2920ba02176d85ed6/"
HD = "https://raw.githubusercontent.com/ryan112358/hd-datasets/8e69757cec2ba8d430f7c915509163c708497f58/"
DPBENCH = (
    "https://raw.githubusercontent.com/dpcomp-org/dpcomp_core/233cfcc380320860ab957003b7b6271e0c2027c1/"
    "dpcomp_core/datafiles/1D/"
)

CATALOGUE = {
    one.name: one
    for one in (
        Dataset(
            "adult",
            "Adult census income (Becker and Kohavi 1996, UCI), 14 attributes as integer codes",
            48_842,
            "adult/adult.csv",
            PGM + "data/adult.csv",
            "repository Apache-2.0; the data CC BY 4.0",
            1_513_340,
            "de1b8341b65de6081d50863b9c15b90ed976e7e47322a7efc37968db98705400",
        ),
        Dataset(
            "adult-training",
            "Adult census income as UCI offers it, the training part, 15 columns",
            32_561,
            "adult/adult.data",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
            "CC BY 4.0",
            3_974_305,
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ),
        Dataset(
            "nltcs",
            "National Long Term Care Survey, 16 binary measures of disability",
            21_574,
            "nltcs/nltcs.csv",
            HD + "clean/nltcs.csv",
            "none stated; a public-use survey table",
            690_591,
            "1b8f091c6e6ab2635cc96d4f19bd39a892fc48e488b0304e92077b4e67f1f89c",
        ),
        Dataset(
            "hepth",
            "DPBench: citations of papers in arXiv HEP-TH, 4,096 counts",
            347_414,
            "dpbench1d/HEPTH.n4096.npy",
            DPBENCH + "HEPTH.n4096.npy",
            "none stated; counts of public data",
            32_848,
            "a39f1283608ac1eae6d1d5bc289e6eb7a42687b765f5f80af1b40566ff853884",
        ),
        Dataset(
            "salaries",
            "DPBench: gross pay of Maryland state employees 2012, 4,096 counts",
            135_727,
            "dpbench1d/GrossCompenMDSalary1.npy",
            DPBENCH + "GrossCompenMDSalary1.npy",
            "none stated; counts of public data",
            32_848,
            "129ddc0a21a7045283b1f933da5012786597ab1db54bada600d3c916ed4a981e",
        ),
        Dataset(
            "capital-loss",
            "DPBench: capital loss of Adult, 4,096 counts",
            17_665,
            "dpbench1d/ADULTFRANK.n4096.npy",
            DPBENCH + "ADULTFRANK.n4096.npy",
            "none stated; counts of public data",
            32_848,
            "d85d9b9fe1ff128820cd103f710200affee71859f721ccb9ecc6e020325e4705",
        ),
        Dataset(
            "patent",
            "DPBench: citations of US patents, 4,096 counts",
            27_948_226,
            "dpbench1d/PATENT.n4096.npy",
            DPBENCH + "PATENT.n4096.npy",
            "none stated; counts of public data",
            32_848,
            "0dac5363cfc1e15189cf00ef3a817dcfeb39678d986b1951ba4f451b1cc6f864",
        ),
    )
}


def folder_of_data() -> Path:
    """Return the folder of fetched tables: ``ONLINEIC_DATA``, else ``onlineic`` in the user's cache.

    XDG Base Directory Specification: the cache is ``XDG_CACHE_HOME`` where that is an absolute path, else
    ``~/.cache``.
    """
    if named := os.environ.get("ONLINEIC_DATA"):
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "onlineic"


def find(name: str, folder: Path | str | None = None) -> Path:
    """Return the file of a table that was fetched, its digest checked.

    Args:
        name: A name of `CATALOGUE`.
        folder: Folder of fetched tables; by default `folder_of_data`.

    Raises:
        InvalidParameterError: If there is no table of this name.
        MissingDataError: If it has not been fetched.
        DigestMismatchError: If another file lies in its place.
    """
    dataset, path = _placed(name, folder)
    if not path.is_file():
        raise MissingDataError(
            f"the table {name} must be fetched first, got no file {dataset.path}; "
            f"python -m onlineic.datasets fetch {name}."
        )
    _check(dataset, path.read_bytes(), str(path), "remove it and fetch again")
    return path


def fetch(name: str, folder: Path | str | None = None) -> Path:
    """Return the file of a table, downloaded unless it is there; its digest is checked either way.

    A file appears whole or not at all, and none is ever overwritten.

    Args:
        name: A name of `CATALOGUE`.
        folder: Where to keep it; by default `folder_of_data`.

    Raises:
        InvalidParameterError: If there is no table of this name.
        DownloadError: If its source cannot be reached or does not have it.
        DigestMismatchError: If the source, or the folder, holds another file.
        OSError: If the folder cannot be written.
    """
    try:
        return find(name, folder)
    except MissingDataError:
        dataset, path = _placed(name, folder)
    content = _downloaded(dataset, path)
    _check(dataset, content, dataset.address, "the source has changed, nothing was kept")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _placed(name: str, folder: Path | str | None) -> tuple[Dataset, Path]:
    """Return a table of the catalogue and its place in a folder."""
    if type(name) is not str or name not in CATALOGUE:
        raise InvalidParameterError(f"name must be one of {', '.join(CATALOGUE)}, got name={shown(name)}.")
    place = folder_of_data() if folder is None else Path(folder)
    return CATALOGUE[name], place / CATALOGUE[name].path


def _downloaded(dataset: Dataset, path: Path) -> bytes:
    """Return what the source sends, and never much more than the table has."""
    import urllib.request  # 30 ms that nobody pays who fetches nothing

    try:
        with urllib.request.urlopen(dataset.address, timeout=TIMEOUT) as answer:
            content = bytes(answer.read(dataset.size + 1))
            if len(content) < dataset.size and answer.length:  # a read of so many bytes does not complain
                raise IncompleteRead(content, answer.length)
            return content
    except (OSError, HTTPException) as error:
        raise DownloadError(
            f"the table {dataset.name} must be downloaded from {dataset.address}, got {error}; check the "
            f"network, or bring that file to {path}."
        ) from None


def _check(dataset: Dataset, content: bytes, source: str, remedy: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != dataset.sha256:
        raise DigestMismatchError(
            f"the table {dataset.name} must have sha256 {dataset.sha256}, got {digest} from {source}; "
            f"{remedy}."
        )
