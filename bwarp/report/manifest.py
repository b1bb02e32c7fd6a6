"""What a run was made of, for other programs: checksums of files, versions, parameters."""

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bwarp import __version__

__all__ = ["manifest", "md5_of"]

#: Packages that decide results, or how they are written.
_PACKAGES = ("numpy", "numba", "pysam", "snakemake")


def manifest(
    inputs: Iterable[str], outputs: Iterable[str], parameters: Mapping, threads: int = 1
) -> dict:
    """The manifest of a run.

    Parameters
    ----------
    inputs, outputs : iterable of str
        Files, and folders of files such as an index.
    parameters : mapping
        The configuration as it was when the run began.
    """
    with ThreadPoolExecutor(threads) as pool:
        described = [list(pool.map(_described, _files(paths))) for paths in (inputs, outputs)]
    return {
        "versions": {"bwarp": __version__, "python": platform.python_version(), **_versions()},
        "parameters": dict(parameters),
        "inputs": described[0],
        "outputs": described[1],
    }


def md5_of(path: str | os.PathLike) -> str:
    """The MD5 of a file, as `md5sum` prints it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _described(path: str) -> dict:
    return {"path": path, "bytes": os.path.getsize(path), "md5": md5_of(path)}


def _files(paths: Iterable[str]) -> list[str]:
    """Every file once, and those of folders."""
    files = []
    for path in dict.fromkeys(paths):
        if os.path.isdir(path):
            files += sorted(str(file) for file in Path(path).rglob("*") if file.is_file())
        else:
            files.append(path)
    return files


def _versions() -> dict[str, str]:
    """Of the packages that are there."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
