"""A short digest of the code that a program or module runs.

Only the file itself and the modules of this package that it imports, directly or through others,
count. The workflow runs a program again when its digest changes, and an edit to the alignment code
does not build the index again; functions compiled of a module are kept under its digest.
"""

import functools
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["files_digest", "imported_sources", "program_digest"]

#: A quick look for imports: parsing every module would be felt at each start of a program.
_IMPORT = re.compile(
    rb"^[ \t]*(?:import[ \t]+([\w.,\t ]+)|from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n(]+))",
    re.MULTILINE,
)


@functools.cache
def files_digest(package: Path) -> str:
    """A digest of the version, and the times and sizes, of a package's sources: it takes 6 ms.

    Edits after the first call do not count: the sources are loaded by then.

    The version counts because files of an installation may all have the same time.
    """
    states = []
    for folder, _, names in os.walk(package):
        for name in names:
            if name.endswith(".py"):
                status = os.stat(os.path.join(folder, name))
                states.append(f"{folder}/{name} {status.st_mtime_ns} {status.st_size}")
    version = (package / "__init__.py").read_text()
    return hashlib.sha256("\n".join([version, *sorted(states)]).encode()).hexdigest()


def imported_sources(program: Path, package: Path) -> list[Path]:
    """The source file `program` and what it imports of the folder `package`, sorted by name.

    Imports inside functions count too, so the code of every engine is included.
    """
    return sorted(_imported(program, package))


def program_digest(program: Path, package: Path) -> str:
    """The digest of a program's `imported_sources`."""
    found = _imported(program, package)
    digest = hashlib.sha256()
    for source in sorted(found):
        # The same code in another folder has the same digest.
        name = source.relative_to(package) if source.is_relative_to(package) else source.name
        digest.update(f"{name} {found[source]}\n".encode())
    return digest.hexdigest()[:16]


def _imported(program: Path, package: Path) -> dict[Path, str]:
    """A program's file and what it imports of a package, and the digest of each alone."""
    waiting, found = [program], {}
    while waiting:
        source = waiting.pop()
        if source not in found:
            status = source.stat()
            found[source], imported = _read(source, package, status.st_mtime_ns, status.st_size)
            waiting += imported
    return found


@functools.cache
def _read(source: Path, package: Path, mtime_ns: int, size: int) -> tuple[str, tuple[Path, ...]]:
    """The digest of one file and the files it imports; a file that changed is read again."""
    text = source.read_bytes()
    return hashlib.sha256(text).hexdigest(), tuple(_imported_files(text, package))


def _imported_files(source: bytes, package: Path) -> Iterator[Path]:
    """The files of `package` that a Python source imports, packages' __init__.py included."""
    for plain, module, names in _IMPORT.findall(source):
        if plain:
            wanted = [part.split()[0] for part in plain.decode().split(",") if part.strip()]
        else:
            # `from package import name`: the name may be a module or something inside one.
            words = re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", names.decode())
            wanted = [f"{module.decode()}.{word}" for word in words]
        for name in wanted:
            first, *parts = name.split(".")
            if first == package.name:
                yield from _files_of(package, parts)


def _files_of(package: Path, parts: list[str]) -> Iterator[Path]:
    folder = package
    for part in ("__init__", *parts):
        file = folder / f"{part}.py"
        if file.is_file():
            yield file
        elif (folder / part).is_dir():
            folder /= part
            if (folder / "__init__.py").is_file():
                yield folder / "__init__.py"
