"""Exit codes, on which scripts that call bwarp rely."""

import pytest

from bwarp.errors import InputError, UsageError


@pytest.mark.parametrize(("kind", "code"), [(InputError, 1), (UsageError, 2)])
def test_exit_codes(kind, code):
    error = kind("reads.fq line 3: what is wrong")
    assert isinstance(error, InputError)
    assert error.exit_code == code
    assert str(error) == "reads.fq line 3: what is wrong"
