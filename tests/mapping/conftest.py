"""A GPU for tests of kernels: a simulated one, and a real one."""

import pytest


@pytest.fixture(params=["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """Run mapping kernels in plain Python, then on a GPU."""
    if request.param == "emulated":
        from tests.helpers.gpu.emulated_mapping import pretend

        pretend(monkeypatch)
