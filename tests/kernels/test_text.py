"""The compiled text kernels equal their reference on random documents."""

import pytest
import text_fuzz

from candide.kernels import text as kernel


@pytest.mark.skipif(kernel.compiled is None, reason="the kernels are not compiled")
@pytest.mark.parametrize("seed", [3, 4])
def test_compiled_loops_equal_the_reference(seed):
    assert text_fuzz.run(3, seed)["sets"] > 0
