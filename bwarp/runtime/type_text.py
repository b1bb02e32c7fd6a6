"""Numba types of the arguments of a function as readable text, from types or from arguments.

    uint8[::1]                          an array, contiguous as in C
    uint8[:]                            an array with any strides
    readonly(uint8[::1])                a read-only array
    records([('start', '<i8'), ...], 1) a one-dimensional array of records
    (int64, float64)                    a tuple
    named('bwarp.io.names.Names', ...)  a named tuple with the types of its fields

The text of arguments is made without importing Numba. Named tuples have text only if their class
can be imported; the text leaves out the names of their fields, which `field_names` returns.
"""

import ast
import importlib
import re
import sys

import numpy as np

from bwarp.runtime import compiler


def text_of_types(found) -> str:
    """Return the types of a function's arguments as text; raise ValueError if unsupported."""
    return f"({''.join(f'{_text(one)}, ' for one in found)})"


def types_of_text(text: str) -> tuple:
    """Parse the types that `text_of_types` wrote."""
    return tuple(map(_type, ast.parse(text, mode="eval").body.elts))


def field_names(text: str) -> str:
    """Return the names of the fields of each named tuple in a text.

    Raises
    ------
    AttributeError, ImportError
        If a class does not exist.
    """
    names = re.findall(r"named\('([^']+)'", text)
    return " ".join(f"{name}({','.join(_class_at(name)._fields)})" for name in names)


def _class_at(path: str) -> type:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _path_of(kind: type) -> str | None:
    """Return the module and name that import a class, or None."""
    there = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    return f"{kind.__module__}.{kind.__qualname__}" if there is kind else None


def _text(one) -> str:
    types = compiler.types
    if isinstance(one, types.Array):
        if isinstance(one.dtype, types.Record):
            text = f"records({compiler.as_dtype(one.dtype).descr!r}, {one.ndim})"
            if _type(ast.parse(text, mode="eval").body) == one:
                return text
        if not one.aligned or one.layout == "F" or isinstance(one.dtype, types.Record):
            raise ValueError(f"no text for {one}")
        last = "::1" if one.layout == "C" else ":"
        text = f"{_text(one.dtype)}[{', '.join([':'] * (one.ndim - 1) + [last])}]"
        return text if one.mutable else f"readonly({text})"
    if isinstance(one, types.NamedTuple | types.NamedUniTuple):
        path = _path_of(one.instance_class)
        if path is None:
            raise ValueError(f"no text for {one}")
        return f"named({path!r}, {', '.join(map(_text, one.types))})"
    if isinstance(one, types.BaseTuple):
        return text_of_types(one.types)
    if isinstance(one, types.Omitted):
        return f"omitted({one.value!r})"
    if one is types.none or isinstance(one, types.Number | types.Boolean):
        return one.name if one.name != "bool" else "boolean"
    raise ValueError(f"no text for {one}")


def _type(node: ast.expr):
    """Return the type that an expression describes."""
    types = compiler.types
    match node:
        case ast.Name(name):
            return getattr(types, name)
        case ast.Tuple(parts):
            return types.BaseTuple.from_types(list(map(_type, parts)))
        case ast.Subscript(element, index):
            axes = index.elts if isinstance(index, ast.Tuple) else [index]
            layout = "C" if axes[-1].step else "A"
            return types.Array(_type(element), len(axes), layout)
        case ast.Call(ast.Name("readonly"), [array]):
            return _type(array).copy(readonly=True)
        case ast.Call(ast.Name("records"), [fields, ast.Constant(axes)]):
            return types.Array(compiler.from_dtype(np.dtype(ast.literal_eval(fields))), axes, "C")
        case ast.Call(ast.Name("omitted"), [value]):
            return types.Omitted(ast.literal_eval(value))
        case ast.Call(ast.Name("named"), [ast.Constant(name), *fields]):
            return types.BaseTuple.from_types(list(map(_type, fields)), _class_at(name))
    raise ValueError(f"no type is written as {ast.unparse(node)}")


# --------------------------------------------------------------------------------------------------
# The text of arguments.

_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1

#: Types of scalars whose conversion needs no more than their type.
_SCALARS = {bool: "boolean", float: "float64", type(None): "none", np.bool_: "boolean"} | {
    kind: np.dtype(kind).name
    for kind in (
        np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
        np.float32, np.float64,
    )
}  # fmt: skip

_NUMBERS = frozenset(_SCALARS.values())


def kind_of(argument):
    """Return a hashable object that is equal only for arguments of the same Numba type.

    It is fast, but different for some arguments of one type.
    """
    kind = type(argument)
    if kind is np.ndarray:
        return argument.dtype, argument.ndim, argument.flags.num
    if kind is int:
        return kind if _LOWEST <= argument <= _HIGHEST else (kind,)
    if issubclass(kind, tuple):
        return kind, *map(kind_of, argument)
    return kind


def text_of_arguments(arguments: tuple) -> str | None:
    """Return the `text_of_types` of the types of arguments, or None if it is not known."""
    texts = [*map(_text_of, arguments)]
    return None if None in texts else "".join(["(", *(f"{text}, " for text in texts), ")"])


def _text_of(argument) -> str | None:
    kind = type(argument)
    if kind is np.ndarray:
        return _text_of_array(argument)
    if kind is int:
        return "int64" if _LOWEST <= argument <= _HIGHEST else None
    if issubclass(kind, tuple):
        if kind is tuple:
            return text_of_arguments(argument)
        texts = [*map(_text_of, argument)]
        path = _path_of(kind) if hasattr(kind, "_fields") else None
        return f"named({path!r}, {', '.join(texts)})" if path and None not in texts else None
    return _SCALARS.get(kind)


def _text_of_array(array: np.ndarray) -> str | None:
    flags, dtype = array.flags, array.dtype
    if array.ndim == 0 or not flags.aligned or not dtype.isnative:
        return None
    if dtype.names:
        is_plain = flags.c_contiguous and flags.writeable
        return f"records({dtype.descr!r}, {array.ndim})" if is_plain else None
    name = "boolean" if dtype.name == "bool" else dtype.name
    if name not in _NUMBERS or (flags.f_contiguous and not flags.c_contiguous):
        return None
    last = "::1" if flags.c_contiguous else ":"
    text = f"{name}[{', '.join([':'] * (array.ndim - 1) + [last])}]"
    return text if flags.writeable else f"readonly({text})"
