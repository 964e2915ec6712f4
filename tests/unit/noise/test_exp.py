"""e^x in floats: its error, the same bits in both forms, and arithmetic that gives others is refused."""

import platform
import subprocess
import sys
from decimal import Decimal, localcontext

import numpy as np
import pytest

from onlineic.errors import InternalError
from onlineic.noise import exp
from onlineic.noise.exp import check_arithmetic, exp_ieee, exp_ieee_one


class TestExponential:
    def test_the_scalar_and_the_array_form_give_the_same_bits(self):
        generator = np.random.default_rng(1)
        x = np.concatenate(
            [
                generator.uniform(-404, 6, 60_000),
                generator.uniform(-61, 7, 40_000),
                generator.normal(0, 1e-3, 1000),
                [0.0, -0.0, 6.0, -60.0, 1e-300],
            ]
        )

        actual = np.array([exp_ieee_one(float(value)) for value in x])

        assert np.array_equal(exp_ieee(x).view(np.uint64), actual.view(np.uint64))

    def test_the_relative_error_is_below_2_to_the_minus_47(self):
        worst = 0.0
        for value in np.random.default_rng(2).uniform(-404, 6, 2000).tolist():
            with localcontext() as context:
                context.prec = 40
                truth = Decimal(value).exp()
                worst = max(worst, abs(float((Decimal(exp_ieee_one(value)) - truth) / truth)))

        assert worst < 2**-47

    def test_the_reduced_argument_stays_below_036(self):
        """At the steps of rint, where the reduction is largest."""
        steps = (np.arange(-583, 9) + 0.5) / exp._LOG2E
        x = np.concatenate([np.nextafter(steps, -1e9), steps, np.nextafter(steps, 1e9)])
        x = x[np.abs(x) <= 404]

        power = np.rint(x * exp._LOG2E)
        reduced = (x - power * exp._LN2HI) - power * exp._LN2LO

        assert np.abs(reduced).max() < 0.36

    @pytest.mark.parametrize("row", [0, 7, 29])
    def test_arithmetic_that_gives_other_bits_is_refused(self, row):
        golden = list(exp._GOLDEN)
        argument, value = golden[row]
        golden[row] = (argument, float(np.nextafter(float.fromhex(value), 2.0)).hex())

        with pytest.raises(InternalError, match="round to nearest"):
            check_arithmetic(tuple(golden))

    @pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"),
        reason="the rounding modes are numbered for x86-64",
    )
    @pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00], ids=["down", "up", "to zero"])
    def test_import_refuses_directed_rounding(self, mode):
        program = (
            "import ctypes, numpy, attrs, fractions\n"
            f"assert ctypes.CDLL(None).fesetround({mode}) == 0\n"
            "try:\n    import onlineic.noise.gumbel\n"
            "except Exception as error:\n    print(type(error).__name__, 'round to nearest' in str(error))\n"
        )

        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

        assert done.stdout == "InternalError True\n", done.stderr
