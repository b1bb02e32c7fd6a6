"""Operations on each lane by itself: sums, extremes, comparisons, choices."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from bwarp.runtime.simd.vector import VectorType, llvm_type

__all__ = [
    "add",
    "equal",
    "extend",
    "greater",
    "mask_bits",
    "maximum",
    "minimum",
    "select",
    "subtract",
]


def _call(builder, name, vector, *operands):
    """Call the LLVM intrinsic of this name for the vector type of the operands."""
    llvm = llvm_type(vector)
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(llvm, [llvm] * len(operands)),
        f"llvm.{name}.v{vector.lanes}i{llvm.element.width}",
    )
    return builder.call(function, operands)


def _alike(a, b) -> bool:
    return isinstance(a, VectorType) and a == b


def _letter(vector: VectorType) -> str:
    return "s" if vector.element.signed else "u"


@intrinsic
def add(typing_context, a, b):
    """[clip(x + y, lowest, highest) for x, y in zip(a, b)] of 8- and 16-bit lanes.

    Those stop at the ends of their type; wider lanes wrap around, for want of an instruction.
    """
    if not _alike(a, b):
        return None

    def codegen(context, builder, signature, arguments):
        if a.element.bitwidth > 16:
            return builder.add(*arguments)
        return _call(builder, _letter(a) + "add.sat", a, *arguments)

    return a(a, b), codegen


@intrinsic
def subtract(typing_context, a, b):
    """[clip(x - y, lowest, highest) for x, y in zip(a, b)] of 8- and 16-bit lanes; as `add`."""
    if not _alike(a, b):
        return None

    def codegen(context, builder, signature, arguments):
        if a.element.bitwidth > 16:
            return builder.sub(*arguments)
        return _call(builder, _letter(a) + "sub.sat", a, *arguments)

    return a(a, b), codegen


@intrinsic
def maximum(typing_context, a, b):
    """[max(x, y) for x, y in zip(a, b)]"""
    if not _alike(a, b):
        return None

    def codegen(context, builder, signature, arguments):
        return _call(builder, _letter(a) + "max", a, *arguments)

    return a(a, b), codegen


@intrinsic
def minimum(typing_context, a, b):
    """[min(x, y) for x, y in zip(a, b)]"""
    if not _alike(a, b):
        return None

    def codegen(context, builder, signature, arguments):
        return _call(builder, _letter(a) + "min", a, *arguments)

    return a(a, b), codegen


@intrinsic
def equal(typing_context, a, b):
    """[x == y for x, y in zip(a, b)], a mask"""
    if not _alike(a, b):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.icmp_unsigned("==", *arguments)

    return VectorType(types.boolean, a.lanes)(a, b), codegen


@intrinsic
def greater(typing_context, a, b):
    """[x > y for x, y in zip(a, b)], a mask"""
    if not _alike(a, b):
        return None

    def codegen(context, builder, signature, arguments):
        compare = builder.icmp_signed if a.element.signed else builder.icmp_unsigned
        return compare(">", *arguments)

    return VectorType(types.boolean, a.lanes)(a, b), codegen


@intrinsic
def select(typing_context, mask, a, b):
    """[x if m else y for m, x, y in zip(mask, a, b)]; a and b may be masks too"""
    if not _alike(a, b) or mask != VectorType(types.boolean, a.lanes):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.select(*arguments)

    return a(mask, a, b), codegen


@intrinsic
def mask_bits(typing_context, mask):
    """sum(m << lane for lane, m in enumerate(mask)), for at most 64 lanes.

    An unsigned integer of as many bits as lanes, of 8 at least.
    """
    if not isinstance(mask, VectorType) or mask.element != types.boolean:
        return None
    words = {8: types.uint8, 16: types.uint16, 32: types.uint32, 64: types.uint64}
    word = words[max(mask.lanes, 8)]

    def codegen(context, builder, signature, arguments):
        bits = builder.bitcast(arguments[0], ir.IntType(mask.lanes))
        return (
            bits if mask.lanes == word.bitwidth else builder.zext(bits, ir.IntType(word.bitwidth))
        )

    return word(mask), codegen


@intrinsic
def extend(typing_context, vector, like):
    """The same numbers in the wider (or equal) element type of the vector `like`."""
    if not isinstance(vector, VectorType) or not isinstance(like, VectorType):
        return None
    if vector.lanes != like.lanes or vector.element.bitwidth > like.element.bitwidth:
        return None

    def codegen(context, builder, signature, arguments):
        if vector.element.bitwidth == like.element.bitwidth:
            return arguments[0]
        widen = builder.sext if vector.element.signed else builder.zext
        return widen(arguments[0], llvm_type(like))

    return like(vector, like), codegen
