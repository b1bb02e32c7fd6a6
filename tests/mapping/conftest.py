"""A GPU for tests of kernels: a pretended one, and a real one."""

import pytest


@pytest.fixture(params=["emulated", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """Kernels of mapping run in plain Python, then on a GPU."""
    if request.param == "emulated":
        from tests.helpers.gpu.emulated_mapping import pretend

        pretend(monkeypatch)
