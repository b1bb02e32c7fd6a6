"""One module names the compiler of kernels, and one names the internals of Numba."""

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    path.relative_to(ROOT)
    for folder in ("bwarp", "tests", "benchmarks", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def modules_named(source: str) -> set[str]:
    """Return modules that a source imports or names with dots; `a.b` for ``from a import b``."""
    named = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            named.add(ast.unparse(node))
    return named


@functools.cache
def names_of_files() -> dict[str, set[str]]:
    return {str(path): modules_named((ROOT / path).read_text()) for path in FILES}


def those_that_name(package: str, folder: str = "") -> list[str]:
    return [
        path
        for path, names in names_of_files().items()
        if path.startswith(folder) and any(f"{name}.".startswith(f"{package}.") for name in names)
    ]


def test_all_forms_of_imports_are_found():
    for source in ("import a.b.c", "from a import x, b", "from a.b import c", "import a; a.b.c()"):
        assert any(f"{name}.".startswith("a.b.") for name in modules_named(source)), source


def test_one_module_names_the_compiler_of_kernels():
    assert those_that_name("numba.cuda") == ["bwarp/gpu/cuda.py"]


@pytest.mark.parametrize("package", ["numba.core", "numba.np", "numba.extending", "llvmlite"])
def test_one_module_names_the_internals_of_numba(package):
    allowed = {"bwarp/gpu/cuda.py", "bwarp/runtime/compiler.py"}
    assert set(those_that_name(package, "bwarp")) <= allowed
