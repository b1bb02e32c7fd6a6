"""Numba's types as text that a person can read, and back.

uint8[::1]                          an array, contiguous as in C
uint8[:]                            one with any strides
readonly(uint8[::1])                one that may not be written
records([('start', '<i8'), ...], 1) an array of records, with one dimension
(int64, float64)                    a tuple
named('bwarp.io.names.Names', ...)  a named tuple, and the types of its fields
"""

import ast
import importlib

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype, from_dtype

__all__ = ["text_of_types", "types_of_text"]


def text_of_types(found: tuple[types.Type, ...]) -> str:
    """The types of a function's arguments as text; ValueError for one that has none."""
    return f"({''.join(f'{_text(one)}, ' for one in found)})"


def types_of_text(text: str) -> tuple[types.Type, ...]:
    """The types that `text_of_types` wrote."""
    return tuple(map(_type, ast.parse(text, mode="eval").body.elts))


def _text(one: types.Type) -> str:
    if isinstance(one, types.Array):
        if isinstance(one.dtype, types.Record):
            text = f"records({as_dtype(one.dtype).descr!r}, {one.ndim})"
            if _type(ast.parse(text, mode="eval").body) == one:
                return text
        if not one.aligned or one.layout == "F" or isinstance(one.dtype, types.Record):
            raise ValueError(f"no text for {one}")
        last = "::1" if one.layout == "C" else ":"
        text = f"{_text(one.dtype)}[{', '.join([':'] * (one.ndim - 1) + [last])}]"
        return text if one.mutable else f"readonly({text})"
    if isinstance(one, types.NamedTuple | types.NamedUniTuple):
        name = f"{one.instance_class.__module__}.{one.instance_class.__qualname__}"
        return f"named({name!r}, {', '.join(map(_text, one.types))})"
    if isinstance(one, types.BaseTuple):
        return text_of_types(one.types)
    if isinstance(one, types.Omitted):
        return f"omitted({one.value!r})"
    if one is types.none or isinstance(one, types.Number | types.Boolean):
        return one.name if one.name != "bool" else "boolean"
    raise ValueError(f"no text for {one}")


def _type(node: ast.expr) -> types.Type:
    """The type that is written so."""
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
            return types.Array(from_dtype(np.dtype(ast.literal_eval(fields))), axes, "C")
        case ast.Call(ast.Name("omitted"), [value]):
            return types.Omitted(ast.literal_eval(value))
        case ast.Call(ast.Name("named"), [ast.Constant(name), *fields]):
            module, _, class_name = name.rpartition(".")
            kind = getattr(importlib.import_module(module), class_name)
            return types.BaseTuple.from_types(list(map(_type, fields)), kind)
    raise ValueError(f"no type is written as {ast.unparse(node)}")
