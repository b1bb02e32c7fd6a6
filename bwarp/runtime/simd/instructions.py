"""What a processor and its compiler offer and Numba does not, besides vectors."""

from bwarp.runtime.simd.compiler import cgutils, intrinsic, ir, types
from bwarp.runtime.simd.vector import address

__all__ = ["leading_zeros", "population_count", "prefetch", "stand_alone"]


@intrinsic
def stand_alone(typing_context):
    """Keep the function that this stands in out of its callers, which then compile faster."""

    def codegen(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for the cache line of array[index]; reads nothing, and may point anywhere."""
    signature = types.void(array, types.intp)

    def codegen(context, builder, signature, arguments):
        byte, word = ir.IntType(8), ir.IntType(32)
        pointer = address(context, builder, signature.args[0], *arguments, byte)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte.as_pointer(), word, word, word]),
            "llvm.prefetch.p0",
        )
        # for reading, into all levels of the cache, data
        builder.call(function, [pointer, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def population_count(typing_context, word):
    """The number of set bits: int.bit_count(word)."""
    if not isinstance(word, types.Integer):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return word(word), codegen


@intrinsic
def leading_zeros(typing_context, word):
    """How many bits lie above the highest set one: its width - int.bit_length(word)."""
    if not isinstance(word, types.Integer):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.IntType(1)(0))

    return word(word), codegen
