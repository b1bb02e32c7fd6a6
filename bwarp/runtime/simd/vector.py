"""A vector as a type of jitted code, and how it comes from memory and goes there."""

import numpy as np

from bwarp.runtime.simd.compiler import (
    binding,
    cpu_target,
    intrinsic,
    ir,
    models,
    register_model,
    types,
)

__all__ = [
    "FEATURES",
    "VECTOR_BYTES",
    "VectorType",
    "address",
    "fill",
    "fill_like",
    "is_flat",
    "lane_count",
    "lanes_of",
    "llvm_type",
    "load",
    "load_like",
    "store",
]


def _target_features() -> set[str]:
    """What Numba compiles for, such as {"avx2", "avx512bw"}: the host unless set otherwise."""
    features = getattr(cpu_target.target_context.codegen(), "_tm_features", None)
    if features is None:
        return {name for name, has in binding.get_host_cpu_features().items() if has}
    return {name[1:] for name in features.split(",") if name.startswith("+")}


#: The features of the processor that Numba compiles for.
FEATURES = _target_features()

#: The bytes of a vector: 64 with AVX-512, 32 with AVX2, else 16.
VECTOR_BYTES = 64 if "avx512bw" in FEATURES else 32 if "avx2" in FEATURES else 16


def lanes_of(dtype) -> int:
    """The lanes a vector of this element type has here."""
    return VECTOR_BYTES // np.dtype(dtype).itemsize


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
    """What LLVM calls the vector."""
    bits = 1 if vector.element == types.boolean else vector.element.bitwidth
    return ir.VectorType(ir.IntType(bits), vector.lanes)


def address(context, builder, array_type, array, index, element):
    """The address of array[index], as a pointer to `element`. No bounds are checked."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), element.as_pointer())


def _natural_lanes(element) -> int:
    return VECTOR_BYTES * 8 // element.bitwidth


def is_flat(array) -> bool:
    """Whether a Numba type is that of an array of neighbouring elements."""
    return isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"


@intrinsic
def load(typing_context, array, index):
    """[array[index + lane] for lane in range(lanes)] of a contiguous 1-d array.

    As many lanes as a vector of `VECTOR_BYTES` has of the array's type.
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
