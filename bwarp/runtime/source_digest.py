"""Compute a short digest of the source code that a program or module runs.

It covers the file and the modules of this package that it imports, directly or indirectly. The
workflow reruns a program when its digest changes, so that an edit to the alignment code does not
rebuild the index; compiled functions are stored under the digest of their module.
"""

import functools
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

#: A quick search for imports: parsing all modules would slow down the start of programs.
_IMPORT = re.compile(
    rb"\n[ \t]*(?:import[ \t]+([\w.,\t ]+)|from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n(]+))"
)


@functools.cache
def files_digest(package: Path) -> str:
    """Return a digest of the version, times and sizes of the sources of a package, in 6 ms.

    Edits after the first call do not count, because the sources are loaded by then. The version is
    included because all files of an installation may have the same time.
    """
    states = []
    for source in _sources(package):
        status = os.stat(source)
        states.append(f"{source} {status.st_mtime_ns} {status.st_size}")
    version = (package / "__init__.py").read_text()
    return hashlib.sha256("\n".join([version, *sorted(states)]).encode()).hexdigest()


def _sources(package: Path | str) -> Iterator[str]:
    """Yield the paths of all sources of a package."""
    for folder, folders, names in os.walk(package):
        if "__pycache__" in folders:
            folders.remove("__pycache__")  # may hold thousands of compiled functions
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))


def imported_sources(program: Path, package: Path) -> list[Path]:
    """Return the source file `program` and what it imports from the folder `package`, sorted.

    Imports inside functions count, so the code of all engines is included.
    """
    return sorted(map(Path, _imported(program, package)))


def program_digest(program: Path, package: Path) -> str:
    """Return the digest of a program's `imported_sources`."""
    found = _imported(program, package)
    folder = _folder(package)
    digest = hashlib.sha256()
    for source in sorted(found, key=lambda path: path.split(os.sep)):
        # The same code in another folder has the same digest.
        name = source.removeprefix(folder) if source.startswith(folder) else program.name
        digest.update(f"{name} {found[source]}\n".encode())
    return digest.hexdigest()[:16]


def _folder(package: Path) -> str:
    """Return the folder as a string; strings are faster than paths at the start of the workflow."""
    return os.path.join(package, "")


def _imported(program: Path, package: Path) -> dict[str, str]:
    """Return a program's file and the files that it imports from a package, with their digests."""
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
    """Return the digest of a file and the files that it imports; reread a changed file."""
    text = Path(source).read_bytes()
    return hashlib.sha256(text).hexdigest(), tuple(dict.fromkeys(_imported_files(text, folder)))


def _imported_files(source: bytes, folder: str) -> Iterator[str]:
    """Yield the files of a package that a Python source imports, including __init__.py files."""
    package = os.path.basename(os.path.dirname(folder))
    for plain, module, names in _IMPORT.findall(b"\n" + source):
        if plain:
            wanted = [part.split()[0] for part in plain.decode().split(",") if part.strip()]
        else:
            # `from package import name`: the name may be a module or one of its members.
            words = re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", names.decode())
            wanted = [f"{module.decode()}.{word}" for word in words]
        for name in wanted:
            first, _, rest = name.partition(".")
            if first == package:
                yield from _files_of(folder, rest)


@functools.cache
def _files_of(folder: str, name: str) -> tuple[str, ...]:
    """Return the files of a module and of its parent packages."""
    modules = _modules(folder)
    parts = name.split(".")
    names = ("", *(".".join(parts[:end]) for end in range(1, len(parts) + 1)))
    return tuple(modules[one] for one in dict.fromkeys(names) if one in modules)


@functools.cache
def _modules(folder: str) -> dict[str, str]:
    """Return the files of all modules of a package, by their names without that of the package."""
    found = {}
    for source in _sources(folder):
        name = source.removeprefix(folder).removesuffix(".py").replace(os.sep, ".")
        found[f".{name}".removesuffix(".__init__")[1:]] = source
    return found
