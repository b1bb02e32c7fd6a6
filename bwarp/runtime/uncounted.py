"""Arrays without reference counts in compiled code.

Numba counts references to an array with atomic operations whenever it is taken from a tuple or
passed to an inlined function. It removes pairs of counts that it can match, but not across loops:
each step of a search counted six times, and took three times as long as its work.

The caller of a compiled function holds its arguments, so counting within it is unnecessary.
"""

from bwarp.runtime.compiler import cgutils, intrinsic, types


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
