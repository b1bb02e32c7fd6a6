"""GPU support shared by all kernels: devices, memory, launches, PTX, sums, sorting, lists."""
