"""The flat public namespace: what it holds, that it is documented, and that importing it stays cheap."""

import subprocess
import sys

import onlineic

PUBLIC = {
    "Answer", "Budget", "Domain", "Grid", "Histogram", "MaximumEntropy", "MeasuredWeights", "Measurement",
    "Median", "MixtureOfProducts", "MultiplicativeWeights", "OnlineIC", "Perceptron", "PrivateData",
    "SessionStatistics",
    "UpdateRule", "at_least", "below", "between", "binned", "categorical", "dates", "dense", "forecast", "integers", "marginal", "one_of",
    "optional", "replay", "rescaled", "span", "weights", "where",
}  # fmt: skip


def test_the_public_names_are_these_and_documented():
    exported = {
        name
        for name, value in vars(onlineic).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("onlineic")
    }

    assert PUBLIC == exported
    assert [] == [name for name in PUBLIC if not getattr(onlineic, name).__doc__]


def test_importing_loads_neither_scipy_nor_an_extra():
    code = (
        "import sys, onlineic; "
        "print([m for m in ('scipy', 'matplotlib', 'pandas', 'hypothesis', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()
