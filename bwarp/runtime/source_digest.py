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
    return sorted(map(Path, _imported(program, package)))


def program_digest(program: Path, package: Path) -> str:
    """The digest of a program's `imported_sources`."""
    found = _imported(program, package)
    folder = _folder(package)
    digest = hashlib.sha256()
    for source in sorted(found, key=lambda path: path.split(os.sep)):
        # The same code in another folder has the same digest.
        name = source.removeprefix(folder) if source.startswith(folder) else program.name
        digest.update(f"{name} {found[source]}\n".encode())
    return digest.hexdigest()[:16]


def _folder(package: Path) -> str:
    """Paths are text below: the digests of all programs are made at each start of the workflow."""
    return os.path.join(package, "")


def _imported(program: Path, package: Path) -> dict[str, str]:
    """A program's file and what it imports of a package, and the digest of each alone."""
    folder = _folder(package)
    waiting, found = [str(program)], {}
    while waiting:
        source = waiting.pop()
        if source not in found:
            status = os.stat(source)
            found[source], imported = _read(source, folder, status.st_mtime_ns, status.st_size)
            waiting += imported
    return found


@functools.cache
def _read(source: str, folder: str, mtime_ns: int, size: int) -> tuple[str, tuple[str, ...]]:
    """The digest of one file and the files it imports; a file that changed is read again."""
    text = Path(source).read_bytes()
    return hashlib.sha256(text).hexdigest(), tuple(dict.fromkeys(_imported_files(text, folder)))


def _imported_files(source: bytes, folder: str) -> Iterator[str]:
    """The files of a package that a Python source imports, packages' __init__.py included."""
    package = os.path.basename(os.path.dirname(folder))
    for plain, module, names in _IMPORT.findall(source):
        if plain:
            wanted = [part.split()[0] for part in plain.decode().split(",") if part.strip()]
        else:
            # `from package import name`: the name may be a module or something inside one.
            words = re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", names.decode())
            wanted = [f"{module.decode()}.{word}" for word in words]
        for name in wanted:
            first, _, rest = name.partition(".")
            if first == package:
                yield from _files_of(folder, rest)


@functools.cache
def _files_of(folder: str, name: str) -> tuple[str, ...]:
    """The files of a module of a package, and of the packages that it lies in."""
    files = []
    for part in ("__init__", *filter(None, name.split("."))):
        file = os.path.join(folder, f"{part}.py")
        if os.path.isfile(file):
            files.append(file)
        elif os.path.isdir(inner := os.path.join(folder, part)):
            folder = inner
            if os.path.isfile(file := os.path.join(folder, "__init__.py")):
                files.append(file)
    return tuple(files)
