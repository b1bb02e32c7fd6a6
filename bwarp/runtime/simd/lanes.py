"""Operations on each lane by itself: sums, extremes, comparisons, selections."""

from bwarp.runtime.simd.compiler import cgutils, intrinsic, ir, types
from bwarp.runtime.simd.vector import VectorType, llvm_type

__all__ = [
    "add",
    "equal",
    "extend",
    "greater",
    "mask_bits",
    "mask_of",
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


def _of_two(a, b, build, is_mask: bool = False):
    """Typing and code of an operation on two vectors of one type."""
    if not _alike(a, b):
        return None

    def codegen(context, builder, signature, arguments):
        return build(builder, *arguments)

    return (VectorType(types.boolean, a.lanes) if is_mask else a)(a, b), codegen


def _signed(a, name: str):
    """An operation that LLVM has for signed and for unsigned lanes."""
    return lambda builder, *pair: _call(
        builder, ("s" if a.element.signed else "u") + name, a, *pair
    )


def _sum_of_two(a, b, name: str):
    if not _alike(a, b):
        return None
    if a.element.bitwidth > 16:
        return _of_two(a, b, lambda builder, *pair: getattr(builder, name)(*pair))
    return _of_two(a, b, _signed(a, f"{name}.sat"))


@intrinsic
def add(typing_context, a, b):
    """[clip(x + y, lowest, highest) for x, y in zip(a, b)] of 8- and 16-bit lanes.

    Those stop at the ends of their type; wider lanes wrap around, for want of an instruction.
    """
    return _sum_of_two(a, b, "add")


@intrinsic
def subtract(typing_context, a, b):
    """[clip(x - y, lowest, highest) for x, y in zip(a, b)] of 8- and 16-bit lanes; as `add`."""
    return _sum_of_two(a, b, "sub")


@intrinsic
def maximum(typing_context, a, b):
    """[max(x, y) for x, y in zip(a, b)]"""
    return _of_two(a, b, _signed(a, "max"))


@intrinsic
def minimum(typing_context, a, b):
    """[min(x, y) for x, y in zip(a, b)]"""
    return _of_two(a, b, _signed(a, "min"))


@intrinsic
def equal(typing_context, a, b):
    """[x == y for x, y in zip(a, b)], a mask"""
    return _of_two(a, b, lambda builder, *pair: builder.icmp_unsigned("==", *pair), is_mask=True)


@intrinsic
def greater(typing_context, a, b):
    """[x > y for x, y in zip(a, b)], a mask"""

    def build(builder, *pair):
        compare = builder.icmp_signed if a.element.signed else builder.icmp_unsigned
        return compare(">", *pair)

    return _of_two(a, b, build, is_mask=True)


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
def mask_of(typing_context, bits, vector):
    """[bits >> lane & 1 for lane in range(len(vector))], a mask; undoes `mask_bits`."""
    if not isinstance(bits, types.Integer) or not isinstance(vector, VectorType):
        return None
    if bits.bitwidth < vector.lanes:
        return None
    mask = VectorType(types.boolean, vector.lanes)

    def codegen(context, builder, signature, arguments):
        word = arguments[0]
        if bits.bitwidth > mask.lanes:
            word = builder.trunc(word, ir.IntType(mask.lanes))
        return builder.bitcast(word, llvm_type(mask))

    return mask(bits, vector), codegen


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
