"""Vectors as a type of jitted code: loads, stores, and operations on and between lanes."""

from bwarp.runtime.compiler import (
    RequireLiteralValue,
    cgutils,
    intrinsic,
    ir,
    models,
    register_model,
    types,
)
from bwarp.runtime.simd import VECTOR_BYTES
from bwarp.runtime.target import cpu_features


class VectorType(types.Type):
    """`lanes` elements of one integer type, or of `types.boolean` for a mask."""

    def __init__(self, element, lanes: int):
        self.element = element
        self.lanes = lanes
        super().__init__(name=f"vector({lanes} x {element})")


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        super().__init__(manager, vector, llvm_type(vector))


def llvm_type(vector: VectorType) -> ir.VectorType:
    """Return the LLVM type of the vector."""
    bits = 1 if vector.element == types.boolean else vector.element.bitwidth
    return ir.VectorType(ir.IntType(bits), vector.lanes)


def address(context, builder, array_type, array, index, element):
    """Return the address of array[index] as a pointer to `element`, without a bounds check."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def _natural_lanes(element) -> int:
    return VECTOR_BYTES * 8 // element.bitwidth


def is_flat(array) -> bool:
    """Return whether a Numba type is a contiguous array."""
    return isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"


@intrinsic
def load(typing_context, array, index):
    """[array[index + lane] for lane in range(lanes)] of a contiguous 1-d array.

    The number of lanes is that of a vector of `VECTOR_BYTES` of the array's type.
    """
    if not is_flat(array):
        return None
    return _load(array, VectorType(array.dtype, _natural_lanes(array.dtype)))


@intrinsic
def load_like(typing_context, array, index, vector):
    """[array[index + lane] for lane in range(len(vector))]: as many lanes as `vector` has."""
    if not is_flat(array) or not isinstance(vector, VectorType):
        return None
    return _load(array, VectorType(array.dtype, vector.lanes), vector)


def _load(array, result, *like):
    def codegen(context, builder, signature, arguments):
        pointer = address(
            context, builder, signature.args[0], arguments[0], arguments[1], llvm_type(result)
        )
        value = builder.load(pointer)
        value.align = array.dtype.bitwidth // 8
        return value

    return result(array, types.intp, *like), codegen


@intrinsic
def store(typing_context, array, index, vector):
    """for lane in range(lanes): array[index + lane] = vector[lane]"""
    if not is_flat(array) or not isinstance(vector, VectorType) or array.dtype != vector.element:
        return None
    signature = types.void(array, types.intp, vector)

    def codegen(context, builder, signature, arguments):
        pointer = address(
            context, builder, signature.args[0], arguments[0], arguments[1], llvm_type(vector)
        )
        builder.store(arguments[2], pointer).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def lane_count(typing_context, vector):
    """len(vector), a constant"""
    if not isinstance(vector, VectorType):
        return None

    def codegen(context, builder, signature, arguments):
        return context.get_constant(types.intp, vector.lanes)

    return types.intp(vector), codegen


@intrinsic
def fill(typing_context, number):
    """[number] * lanes, as many lanes as a vector of `VECTOR_BYTES` has of the number's type."""
    element = types.unliteral(number)
    if not isinstance(element, types.Integer):
        return None
    return _fill(VectorType(element, _natural_lanes(element)))


@intrinsic
def fill_like(typing_context, number, vector):
    """[number] * len(vector); the type of the number is the type of the lanes."""
    element = types.unliteral(number)
    if not isinstance(element, types.Integer) or not isinstance(vector, VectorType):
        return None
    return _fill(VectorType(element, vector.lanes), vector)


def _fill(result, *like):
    def codegen(context, builder, signature, arguments):
        llvm = llvm_type(result)
        first = builder.insert_element(
            ir.Constant(llvm, ir.Undefined), arguments[0], ir.IntType(32)(0)
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), result.lanes), [0] * result.lanes)
        return builder.shuffle_vector(first, ir.Constant(llvm, ir.Undefined), zeros)

    return result(result.element, *like), codegen


# --------------------------------------------------------------------------------------------------
# Operations per lane: sums, extremes, comparisons, selections.


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
    """Return typing and code of an operation on two vectors of the same type."""
    if not _alike(a, b):
        return None

    def codegen(context, builder, signature, arguments):
        return build(builder, *arguments)

    return (VectorType(types.boolean, a.lanes) if is_mask else a)(a, b), codegen


def _signed(a, name: str):
    """Choose the LLVM operation for signed or unsigned lanes."""
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

    8- and 16-bit lanes saturate; wider lanes wrap around, because there is no instruction for that.
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

    The result is an unsigned integer with as many bits as lanes, at least 8.
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
    """Convert the numbers to the wider (or equal) element type of the vector `like`."""
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


# --------------------------------------------------------------------------------------------------
# Operations that move lanes: reversal, transposition, table lookup.


@intrinsic
def reverse(typing_context, vector):
    """vector[::-1]"""
    if not isinstance(vector, VectorType):
        return None

    def codegen(context, builder, signature, arguments):
        order = list(range(vector.lanes))[::-1]
        return builder.shuffle_vector(
            arguments[0],
            arguments[0],
            ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), order),
        )

    return vector(vector), codegen


@intrinsic
def transpose(typing_context, codes, starts, first, out, at, stride):
    """Transpose a 16 by 16 square of bytes: 16 loads, 64 shuffles in registers, 16 stores.

    for k in range(16): for r in range(16): out[at + r * stride + k] = codes[starts[k] + first + r]
    """
    if not (is_flat(codes) and is_flat(out) and codes.dtype.bitwidth == out.dtype.bitwidth == 8):
        return None
    if not is_flat(starts) or starts.dtype != types.int64:
        return None
    signature = types.void(codes, starts, types.intp, out, types.intp, types.intp)
    row_type = ir.VectorType(ir.IntType(8), 16)
    low = [k // 2 + 16 * (k % 2) for k in range(16)]
    high = [k + 8 for k in low]

    def codegen(context, builder, signature, arguments):
        codes, starts, first, out, at, stride = arguments
        kinds, word = signature.args, ir.IntType(64)
        rows = []
        for k in range(16):
            start = builder.load(address(context, builder, kinds[1], starts, word(k), word))
            source = address(context, builder, kinds[0], codes, builder.add(start, first), row_type)
            rows.append(builder.load(source))
            rows[-1].align = 1
        orders = [ir.Constant(ir.VectorType(ir.IntType(32), 16), order) for order in (low, high)]
        # Interleaving row k with row k + 8 four times exchanges the bits of row and column.
        for _ in range(4):
            rows = [
                builder.shuffle_vector(rows[k], rows[k + 8], order)
                for k in range(8)
                for order in orders
            ]
        for r, row in enumerate(rows):
            slot = builder.add(at, builder.mul(stride, word(r)))
            target = address(context, builder, kinds[3], out, slot, row_type)
            builder.store(row, target).align = 1
        return context.get_dummy_value()

    return signature, codegen


def _literal(value) -> int:
    if not isinstance(value, types.IntegerLiteral):
        raise RequireLiteralValue("the size of a table must be a constant")
    return value.literal_value


@intrinsic(prefer_literal=True)
def lookup(typing_context, table, start, size, indices):
    """[table[start + i] for i in indices] of a table of bytes, for indices below `size`.

    `size` is a constant, 32, 64 or 128, and table[start : start + size] must exist. With AVX-512
    VBMI this is a single instruction; otherwise it is one shuffle per 16 bytes of the table, or one
    load per lane.
    """
    if not is_flat(table) or table.dtype.bitwidth != 8 or not isinstance(indices, VectorType):
        return None
    if indices.element.bitwidth != 8:
        return None
    entries = _literal(size)
    result = VectorType(table.dtype, indices.lanes)
    signature = result(table, types.intp, size, indices)

    def codegen(context, builder, signature, arguments):
        base = address(
            context, builder, signature.args[0], arguments[0], arguments[1], ir.IntType(8)
        )
        return _lookup_bytes(builder, base, entries, arguments[3], indices.lanes)

    return signature, codegen


def _lookup_bytes(builder, base, entries, indices, lanes):
    """Emit a table lookup: whole-register permutes, 16-byte shuffles, or one load per lane."""
    registers = {16: 128, 32: 256, 64: 512}
    wide = lanes in registers
    bits = registers.get(lanes)
    if wide and "avx512vbmi" in cpu_features() and "avx512vl" in cpu_features():
        pieces = [
            _load_bytes(builder, base, at, lanes) for at in range(0, max(entries, lanes), lanes)
        ]
        if entries < lanes:
            pieces = [
                _repeat_bytes(builder, _load_bytes(builder, base, 0, entries), entries, lanes)
            ]
        if len(pieces) == 1:
            return _x86(builder, f"llvm.x86.avx512.permvar.qi.{bits}", lanes, pieces[0], indices)
        pairs = [
            _x86(builder, f"llvm.x86.avx512.vpermi2var.qi.{bits}", lanes, low, indices, high)
            for low, high in zip(pieces[::2], pieces[1::2], strict=True)
        ]
        return _choose_piece(builder, pairs, indices, 2 * lanes, lanes)
    shuffle = {16: "ssse3", 32: "avx2", 64: "avx512bw"}.get(lanes)
    if wide and shuffle in cpu_features():
        name = {
            16: "llvm.x86.ssse3.pshuf.b.128",
            32: "llvm.x86.avx2.pshuf.b",
            64: "llvm.x86.avx512.pshuf.b.512",
        }[lanes]
        low_bits = builder.and_(indices, _constant(lanes, 15))
        pieces = [
            _x86(
                builder,
                name,
                lanes,
                _repeat_bytes(builder, _load_bytes(builder, base, at, 16), 16, lanes),
                low_bits,
            )
            for at in range(0, entries, 16)
        ]
        return _choose_piece(builder, pieces, indices, 16, lanes)
    result = ir.Constant(ir.VectorType(ir.IntType(8), lanes), ir.Undefined)
    for lane in range(lanes):
        at = builder.extract_element(indices, ir.IntType(32)(lane))
        byte = builder.load(builder.gep(base, [builder.zext(at, ir.IntType(64))]))
        result = builder.insert_element(result, byte, ir.IntType(32)(lane))
    return result


def _constant(lanes, value):
    return ir.Constant(ir.VectorType(ir.IntType(8), lanes), [value] * lanes)


def _load_bytes(builder, base, at, lanes):
    pointer = builder.gep(base, [ir.IntType(64)(at)])
    value = builder.load(builder.bitcast(pointer, ir.VectorType(ir.IntType(8), lanes).as_pointer()))
    value.align = 1
    return value


def _repeat_bytes(builder, vector, length, lanes):
    order = [lane % length for lane in range(lanes)]
    return builder.shuffle_vector(
        vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), lanes), order)
    )


def _x86(builder, name, lanes, *operands):
    vector = ir.VectorType(ir.IntType(8), lanes)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * len(operands)), name
    )
    return builder.call(function, operands)


def _choose_piece(builder, pieces, indices, entries_a_piece, lanes):
    """Select the piece of each index, pieces[index // entries_a_piece], by a chain."""
    result = pieces[0]
    for number, piece in enumerate(pieces[1:], 1):
        here = builder.icmp_unsigned(">=", indices, _constant(lanes, number * entries_a_piece))
        result = builder.select(here, piece, result)
    return result


# --------------------------------------------------------------------------------------------------
# Compiler and processor features that Numba lacks, other than vectors.


@intrinsic
def stand_alone(typing_context):
    """Prevent inlining of the enclosing function, so that its callers compile faster."""

    def codegen(context, builder, signature, arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def prefetch(typing_context, array, index):
    """Prefetch the cache line of array[index], which may be any address."""
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
    """Return the number of set bits: int.bit_count(word)."""
    if not isinstance(word, types.Integer):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return word(word), codegen


@intrinsic
def leading_zeros(typing_context, word):
    """Return the number of leading zero bits: width - int.bit_length(word)."""
    if not isinstance(word, types.Integer):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.IntType(1)(0))

    return word(word), codegen
