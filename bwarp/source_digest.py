"""A short digest of the code a program runs, so that edited code makes the workflow rerun it.

Only the program and the modules of this package that it imports, directly or through others,
count: an edit to the alignment code does not build the index again.
"""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["program_digest"]


def program_digest(program: Path, package: Path) -> str:
    """The digest of the source file `program` and what it imports of the folder `package`.

    Imports inside functions count too, so the code of every engine is included.
    """
    waiting, found = [program], {}
    while waiting:
        source = waiting.pop()
        if source not in found:
            found[source] = source.read_bytes()
            waiting += _imported_files(found[source], package)
    digest = hashlib.sha256()
    for source in sorted(found):
        # The same code in another folder has the same digest.
        name = source.relative_to(package) if source.is_relative_to(package) else source.name
        digest.update(f"{name} {hashlib.sha256(found[source]).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _imported_files(source: bytes, package: Path) -> Iterator[Path]:
    """The files of `package` that a Python source imports, packages' __init__.py included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            # `from package import name`: the name may be a module or something inside one.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
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
