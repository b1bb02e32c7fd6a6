"""The meaning of every operation of bwarp/gpu/ptx.py in plain Python.

Arrays are NumPy arrays and scalars plain integers; results are plain integers or tuples of them.
The tests compare the two on a GPU.
"""

__all__ = [
    "add_byte_differences",
    "add_max_lanes",
    "add_rounded",
    "load_uint32x2",
    "load_uint32x4",
    "load_uint64x2",
    "max3_lanes",
    "max_lanes",
    "multiply_add",
    "opaque",
    "permute_bytes",
]


# --- Read-only loads of neighbouring elements ---------------------------------------------------


def load_uint32x2(array, index):
    """Return the two uint32 at index and index + 1."""
    return int(array[index]), int(array[index + 1])


def load_uint32x4(array, index):
    """Return the four uint32 from index on."""
    return tuple(int(element) for element in array[index : index + 4])


def load_uint64x2(array, index):
    """Return the two uint64 at index and index + 1."""
    return int(array[index]), int(array[index + 1])


# --- Two 16-bit numbers in one register ---------------------------------------------------------


def _signed(value, bits):
    """Return the low bits of a number as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _lanes(register):
    return _signed(register >> 16, 16), _signed(register, 16)


def _register(high, low):
    return _signed((high & 0xFFFF) << 16 | low & 0xFFFF, 32)


def max_lanes(a, b):
    """Return the maximum in each lane."""
    return _register(*map(max, _lanes(a), _lanes(b)))


def max3_lanes(a, b, c):
    """Return the maximum of three in each lane."""
    return max_lanes(max_lanes(a, b), c)


def add_max_lanes(a, b, c):
    """Return max(a + b, c) in each lane; the sum wraps within its lane."""
    (a_high, a_low), (b_high, b_low) = _lanes(a), _lanes(b)
    return max_lanes(_register(a_high + b_high, a_low + b_low), c)


def multiply_add(a, b, c):
    """Return a * b + c in 32 bits."""
    return _signed(a * b + c, 32)


def permute_bytes(a, b, selector):
    """Pick four bytes out of eight, by one nibble each."""
    source = (a & 0xFFFFFFFF) | (b & 0xFFFFFFFF) << 32
    result = 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = source >> 8 * (nibble & 7) & 0xFF
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * i
    return _signed(result, 32)


def add_byte_differences(a, b, c):
    """Return c + the sum of |a - b| over four unsigned bytes."""
    bytes_of = [(x & 0xFFFFFFFF).to_bytes(4, "little") for x in (a, b)]
    return _signed(c + sum(abs(x - y) for x, y in zip(*bytes_of, strict=True)), 32)


# --- Hiding values from the compiler --------------------------------------------------------------


def opaque(a):
    """Return the same number."""
    return a


# --- Floating point as on a CPU -----------------------------------------------------------------


def add_rounded(a, b):
    """Return a + b."""
    return a + b
