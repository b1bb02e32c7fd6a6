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
        return _without_counts(context, builder, arrays, arguments[0])

    return arrays(arrays), codegen


def _without_counts(context, builder, kind, value):
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        # References are counted through this pointer; LLVM drops all counts of a null pointer.
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for i, part in enumerate(kind):
            inner = _without_counts(context, builder, part, builder.extract_value(value, i))
            value = builder.insert_value(value, inner, i)
    return value
