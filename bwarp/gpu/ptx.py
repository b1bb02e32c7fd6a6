"""Inline PTX for numba-cuda: instructions that no Python expression compiles to.

This is the only module with PTX. bwarp/gpu/ptx_reference.py defines the meaning of each operation
in plain Python under the same name, and a test compares the two on a GPU. Unlike kernels linked
with CUDA C++, kernels with inline PTX can be cached.

An operation is a Numba intrinsic: a function that runs while a kernel is compiled, checks the types
of its operands and emits one asm block. In its text, `$0`, `$1`, ... are the results followed by
the operands; the constraint string describes each: `r` is a 32-bit register, `l` a 64-bit register,
and `=` a result. The compiler may move, merge or drop operations without side effects, like any
arithmetic.
"""

from bwarp.gpu.cuda import TypingError, cgutils, intrinsic, ir, signature, types

__all__ = [
    "add_byte_differences",
    "add_max_lanes",
    "add_rounded",
    "load_shared_int32x4",
    "load_uint32x2",
    "load_uint32x4",
    "load_uint64x2",
    "max3_lanes",
    "max_lanes",
    "multiply_add",
    "opaque",
    "permute_bytes",
    "shared_address",
]

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


# --- Read-only loads of neighbouring elements ---------------------------------------------------
#
# Numba loads arrays one element at a time, even adjacent ones. These loads take 8 or 16 bytes in
# one instruction through the read-only path (`.nc`): the array must not be written while the kernel
# runs, and the index must be a multiple of the number of elements, in an array whose first element
# has that alignment (device allocations and whole rows of them do). The index is taken as unsigned:
# negative indices do not wrap, and no instruction is spent on them.


def _load(array, index, element, count, instruction):
    """Return typing and code of a load of `count` elements, shared by the loads below."""
    if not (
        isinstance(array, types.Array)
        and array.ndim == 1
        and array.layout == "C"
        and array.dtype == element
    ):
        raise TypingError(f"{instruction} needs a contiguous 1-d array of {element}, not {array}")
    if not isinstance(index, types.Integer):
        raise TypingError(f"{instruction} needs an integer index, not {index}")
    register, constraint = {32: (_I32, "=r"), 64: (_I64, "=l")}[element.bitwidth]
    results = ", ".join(f"${i}" for i in range(count))
    text = f"{instruction} {{{results}}}, [${count}];"
    constraints = ",".join([constraint] * count + ["l"])

    def codegen(context, builder, _signature, arguments):
        elements = context.make_array(array)(context, builder, value=arguments[0])
        position = context.cast(builder, arguments[1], index, types.uint64)
        address = builder.ptrtoint(builder.gep(elements.data, [position]), _I64)
        function = ir.FunctionType(ir.LiteralStructType([register] * count), [_I64])
        loaded = builder.call(ir.InlineAsm(function, text, constraints), [address])
        return cgutils.pack_array(builder, [builder.extract_value(loaded, i) for i in range(count)])

    return signature(types.UniTuple(element, count), array, index), codegen


@intrinsic
def load_uint32x2(typingctx, array, index):
    """Return the two uint32 at index and index + 1; index is even. One 8-byte read."""
    return _load(array, index, types.uint32, 2, "ld.global.nc.v2.u32")


@intrinsic
def load_uint32x4(typingctx, array, index):
    """Return the four uint32 from index on; index is a multiple of 4. One 16-byte read."""
    return _load(array, index, types.uint32, 4, "ld.global.nc.v4.u32")


@intrinsic
def load_uint64x2(typingctx, array, index):
    """Return the two uint64 at index and index + 1; index is even. One 16-byte read."""
    return _load(array, index, types.uint64, 2, "ld.global.nc.v2.u64")


# --- Two 16-bit numbers in one register ---------------------------------------------------------
#
#     bits   31 ........ 16 | 15 ......... 0
#            high lane      | low lane            each lane a two's complement int16
#
# Registers are int32 in the types. The packed add and max exist from compute capability 9.0 on;
# the hardware fuses an add and a max, or two max, into one instruction.


def _registers(count, text):
    """Return typing and code of an operation from `count` int32 registers to one."""
    constraints = ",".join(["=r"] + ["r"] * count)

    def codegen(context, builder, _signature, arguments):
        asm = ir.InlineAsm(ir.FunctionType(_I32, [_I32] * count), text, constraints)
        return builder.call(asm, arguments)

    return signature(types.int32, *[types.int32] * count), codegen


@intrinsic
def max_lanes(typingctx, a, b):
    """Return the maximum in each lane."""
    return _registers(2, "max.s16x2 $0, $1, $2;")


@intrinsic
def max3_lanes(typingctx, a, b, c):
    """Return the maximum of three in each lane, in one instruction."""
    return _registers(3, "{ .reg .b32 t; max.s16x2 t, $1, $2; max.s16x2 $0, t, $3; }")


@intrinsic
def add_max_lanes(typingctx, a, b, c):
    """Return max(a + b, c) in each lane, in one instruction; the sum wraps within its lane."""
    return _registers(3, "{ .reg .b32 t; add.s16x2 t, $1, $2; max.s16x2 $0, t, $3; }")


@intrinsic
def multiply_add(typingctx, a, b, c):
    """Return a * b + c in 32 bits.

    With b = 1 in a register, this is an addition on the multiply pipe, in parallel with the
    comparisons: if neither lane of the sum leaves 0..65535, it adds both lanes at once.
    """
    return _registers(3, "mad.lo.s32 $0, $1, $2, $3;")


@intrinsic
def permute_bytes(typingctx, a, b, selector):
    """Pick four bytes out of eight; nibble i of the selector picks byte i of the result.

    Bytes 0 to 3 are those of a, 4 to 7 those of b. A nibble with bit 3 set gives eight copies of
    the sign bit of the byte that its low bits select.
    """
    return _registers(3, "prmt.b32 $0, $1, $2, $3;")


@intrinsic
def add_byte_differences(typingctx, a, b, c):
    """Return c + the sum of |a - b| over four bytes; one instruction up to sm_90, then five."""
    return _registers(3, "vabsdiff4.u32.u32.u32.add $0, $1, $2, $3;")


# --- Hiding values from the compiler --------------------------------------------------------------


@intrinsic
def opaque(typingctx, a):
    """Return a as a number that the compiler assumes to differ every time.

    If a condition does not change in a loop, the compiler duplicates the loop and evaluates the
    condition before it. If threads of a warp then disagree, the warp runs both loops and
    synchronises at every shuffle, at half the speed. A condition on an opaque number stays inside
    the loop.
    """

    def codegen(context, builder, _signature, arguments):
        asm = ir.InlineAsm(
            ir.FunctionType(_I32, [_I32]), "mov.b32 $0, $1;", "=r,r", side_effect=True
        )
        return builder.call(asm, arguments)

    return signature(types.int32, types.int32), codegen


# --- Floating point as on a CPU -----------------------------------------------------------------


@intrinsic
def add_rounded(typingctx, a, b):
    """Return a + b in float64 with a rounded first; the compiler would fuse a product and a sum."""

    def codegen(context, builder, _signature, arguments):
        double = ir.DoubleType()
        function = ir.FunctionType(double, [double, double])
        return builder.call(ir.InlineAsm(function, "add.rn.f64 $0, $1, $2;", "=d,d,d"), arguments)

    return signature(types.float64, types.float64, types.float64), codegen


# --- Shared memory by address -------------------------------------------------------------------


@intrinsic
def shared_address(typingctx, array):
    """Return the 32-bit shared-memory address of the first element of a shared array."""

    def codegen(context, builder, sig, arguments):
        elements = context.make_array(sig.args[0])(context, builder, value=arguments[0])
        pointer = builder.ptrtoint(elements.data, _I64)
        text = "{ .reg .u64 t; cvta.to.shared.u64 t, $1; cvt.u32.u64 $0, t; }"
        asm = ir.InlineAsm(ir.FunctionType(_I32, [_I64]), text, "=r,l")
        return builder.call(asm, [pointer])

    return signature(types.int32, array), codegen


def _load_shared(count, instruction):
    registers = ", ".join(f"${i}" for i in range(count))
    text = f"{instruction} {{{registers}}}, [${count}];"

    def codegen(context, builder, _signature, arguments):
        function = ir.FunctionType(ir.LiteralStructType([_I32] * count), [_I32])
        # Other threads write this memory, so the load must not be dropped or moved over a barrier.
        asm = ir.InlineAsm(function, text, ",".join(["=r"] * count + ["r"]), side_effect=True)
        loaded = builder.call(asm, arguments)
        return cgutils.pack_array(builder, [builder.extract_value(loaded, i) for i in range(count)])

    return signature(types.UniTuple(types.int32, count), types.int32), codegen


@intrinsic
def load_shared_int32x4(typingctx, address):
    """Return the four int32 at a shared-memory address, a multiple of 16. One 16-byte read."""
    return _load_shared(4, "ld.shared.v4.b32")
