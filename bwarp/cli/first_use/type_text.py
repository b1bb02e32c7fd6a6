"""Numba's types as text that a person can read, and back.

uint8[::1]                          an array, contiguous as in C
uint8[:]                            one with any strides
readonly(uint8[::1])                one that may not be written
(int64, float64)                    a tuple
named('bwarp.io.names.Names', ...)  a named tuple, and the types of its fields
"""

import importlib

from numba import types

__all__ = ["text_of_types", "types_of_text"]


def text_of_types(found: tuple[types.Type, ...]) -> str:
    """The types of a function's arguments as text; ValueError for one that has none."""
    return f"({''.join(f'{_text(one)}, ' for one in found)})"


def types_of_text(text: str) -> tuple[types.Type, ...]:
    """The types that `text_of_types` wrote."""
    names = {"readonly": _read_only, "named": _named, "omitted": types.Omitted}
    return tuple(_type(one) for one in eval(text, vars(types) | names))


def _text(one: types.Type) -> str:
    if isinstance(one, types.Array):
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


def _type(read) -> types.Type:
    """A type, or a tuple of them as they are written."""
    return types.BaseTuple.from_types([_type(one) for one in read]) if type(read) is tuple else read


def _read_only(array: types.Array) -> types.Array:
    return array.copy(readonly=True)


def _named(name: str, *fields) -> types.BaseTuple:
    module, _, class_name = name.rpartition(".")
    kind = getattr(importlib.import_module(module), class_name)
    return types.BaseTuple.from_types([_type(one) for one in fields], kind)
