"""Operations that move lanes: turning round, turning a square, looking up in a table."""

from bwarp.runtime.simd.compiler import RequireLiteralValue, cgutils, intrinsic, ir, types
from bwarp.runtime.simd.vector import FEATURES, VectorType, address, is_flat

__all__ = ["lookup", "reverse", "transpose"]


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
    """Turn a 16 by 16 square of bytes: 16 loads, 64 shuffles in registers, 16 stores.

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
        # Weaving row k with row k + 8 four times over exchanges the bits of row and column.
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

    `size` is a constant, 32, 64 or 128; all of table[start : start + size] must exist. With AVX-512
    VBMI this is one instruction whatever the indices are; elsewhere it is a shuffle for each
    16 bytes of the table, or a load for each lane.
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
    """Emit a table lookup: whole-register permutes, 16-byte shuffles, or one load a lane."""
    registers = {16: 128, 32: 256, 64: 512}
    wide = lanes in registers
    bits = registers.get(lanes)
    if wide and "avx512vbmi" in FEATURES and "avx512vl" in FEATURES:
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
    if wide and shuffle in FEATURES:
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
    """The piece that each index falls in: pieces[index // entries_a_piece], by a chain."""
    result = pieces[0]
    for number, piece in enumerate(pieces[1:], 1):
        here = builder.icmp_unsigned(">=", indices, _constant(lanes, number * entries_a_piece))
        result = builder.select(here, piece, result)
    return result
