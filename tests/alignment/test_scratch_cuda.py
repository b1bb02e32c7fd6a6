"""Work space is used again, and never by two at once."""

import numpy as np
import pytest
from emulated_alignment import pretend

from bwarp.alignment import scratch_cuda
from bwarp.alignment.scratch_cuda import scratch


def test_work_space_is_used_again(monkeypatch):
    pretend(monkeypatch)
    with scratch(10, np.int32) as first:
        with scratch(10, np.int32) as second:
            assert second is not first
        with scratch(10, np.uint32) as third:
            assert third.dtype == np.uint32
    with scratch(7, np.int32) as again:
        assert again is first
    with scratch(11, np.int32) as larger:
        assert larger.size == 11
    with scratch(0, np.int32) as again:
        assert again is larger


def test_large_or_abandoned_work_space_is_not_kept(monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(scratch_cuda, "MOST_BYTES", 40)
    with scratch(11, np.int32) as large:
        pass
    with scratch(10, np.int32) as other:
        assert other is not large
    with pytest.raises(KeyError), scratch(5, np.int32) as abandoned:
        raise KeyError
    with scratch(5, np.int32) as other:
        assert other is not abandoned
