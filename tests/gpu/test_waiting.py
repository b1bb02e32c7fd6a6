"""A thread that waits for the GPU uses no CPU time."""

import pytest

from bwarp.gpu.device import sleep_while_waiting


@pytest.mark.gpu
def test_the_driver_is_set_to_blocking_waits():
    from bwarp.gpu.cuda import cuda, driver_calls

    sleep_while_waiting()
    for number in range(len(cuda.gpus)):
        flags, _ = driver_calls.cuDevicePrimaryCtxGetState(number)
        assert flags & 7 == 4


def test_a_driver_that_refuses_is_not_an_error(monkeypatch):
    module = pytest.importorskip("bwarp.gpu.cuda")
    asked = []

    class Refusing:
        def cuDevicePrimaryCtxSetFlags(self, number, flags):  # noqa: N802
            asked.append((number, flags))
            raise module.CudaAPIError(708, "the primary context is active")

    monkeypatch.setattr(module, "driver_calls", Refusing())
    monkeypatch.setattr(module.cuda, "gpus", ["one", "another"])
    sleep_while_waiting()
    assert asked == [(0, 4), (1, 4)]
