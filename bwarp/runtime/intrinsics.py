"""Functions written in LLVM, except those of vectors; importing this module imports Numba."""

from bwarp.runtime.compiler import cgutils, intrinsic, ir, types


@intrinsic
def uncounted(typing_context, arrays):
    """Return the same array or tuple without reference counts, not to be returned or stored."""

    def codegen(context, builder, signature, arguments):
        value = arguments[0]
        for path in _counted_parts(context, arrays):
            # References are counted through this pointer; LLVM drops all counts of a null pointer.
            value = builder.insert_value(value, cgutils.get_null_value(cgutils.voidptr_t), path)
        return value

    return arrays(arrays), codegen


def _counted_parts(context, kind, path=()):
    """List where the pointers to reference counts are in an array, or a tuple of arrays."""
    if isinstance(kind, types.Array):
        yield (*path, context.data_model_manager[kind].get_field_position("meminfo"))
    if isinstance(kind, types.BaseTuple):
        for i, part in enumerate(kind):
            yield from _counted_parts(context, part, (*path, i))


def _caller(count: int):
    """Return a function that calls C code at an address with `count` 64-bit numbers or pointers."""
    integer = ir.IntType(64)

    def codegen(_context, builder, _signature, arguments):
        function = ir.FunctionType(integer, [integer] * count).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])

    return types.int64(*[types.int64] * (count + 1)), codegen


@intrinsic
def call_3(_context, address, a, b, c):
    return _caller(3)


@intrinsic
def call_5(_context, address, a, b, c, d, e):
    return _caller(5)


@intrinsic
def call_6(_context, address, a, b, c, d, e, f):
    return _caller(6)
