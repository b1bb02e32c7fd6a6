"""Threads that wait for a GPU sleep.

CUDA's own way, where there are more processors than programs, is to ask the GPU without a pause:
each thread that waits takes a processor from those that have work.
"""

from contextlib import suppress

__all__ = ["BLOCKING_SYNC", "sleep_while_waiting"]

#: CU_CTX_SCHED_BLOCKING_SYNC.
BLOCKING_SYNC = 4


def sleep_while_waiting() -> None:
    """Say so to the driver, for every GPU; before a GPU is used."""
    from bwarp.gpu.cuda import CudaAPIError, cuda, driver_calls

    for number in range(len(cuda.gpus)):
        # An older driver, and a GPU in use: it is a matter of speed alone.
        with suppress(CudaAPIError):
            driver_calls.cuDevicePrimaryCtxSetFlags(number, BLOCKING_SYNC)
