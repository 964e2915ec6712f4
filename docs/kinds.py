"""Draw the pictures of columns.md: counts of every kind of column, as one session releases them.

    python docs/kinds.py

The table is made up, and noise is simulated: the pictures come out the same until the rules of a session
change.
"""

import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import onlineic as ic
from onlineic.noise import SimulatedNoise, public_generator

FOLDER = Path(__file__).resolve().parent / "pictures"
ROWS = 20_000
DOMAIN = ic.Domain.of(
    ward=["north", "south", "east"],
    age=range(100),
    stay=ic.binned([0, 1, 3, 7, 14, 30, 60]),
    cost=ic.number(0, 5000, bins=25),
    day=ic.dates("2024-01", "2024-12", by="month"),
    arrival=ic.binned(range(25), clock="hours"),
)
PICTURES = {  # name of the picture: attribute, kind of figure
    "kind_labels": ("ward", None),
    "kind_integers": ("age", None),
    "kind_bins": ("stay", None),
    "kind_number": ("cost", None),
    "kind_dates": ("day", "line"),
    "kind_times": ("arrival", None),
}


def visits() -> dict[str, np.ndarray]:
    """Return 20,000 made-up visits."""
    draw = public_generator(7)
    seconds = (draw.normal(13.5, 3.8, ROWS).clip(0, 23.99) * 3600).astype(int)
    return {
        "ward": draw.choice(["north", "south", "east"], ROWS, p=[0.5, 0.3, 0.2]),
        "age": np.concatenate([draw.normal(68, 14, ROWS // 2), draw.normal(34, 16, ROWS // 2)])
        .clip(0, 99)
        .astype(int),
        "stay": draw.gamma(1.2, 4.0, ROWS).clip(0, 59.9),
        "cost": draw.lognormal(6.6, 0.7, ROWS),
        "day": np.datetime64("2024-01-01") + draw.integers(0, 364, ROWS) * np.timedelta64(1, "D"),
        "arrival": [f"{one // 3600:02}:{one // 60 % 60:02}:{one % 60:02}" for one in seconds.tolist()],
    }


def draw(folder: Path = FOLDER) -> list[Path]:
    """Write the pictures into a folder, and return where they are."""
    data = ic.PrivateData.from_records(visits(), DOMAIN)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of wide bounds
        session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9), noise=SimulatedNoise(1), questions=[*DOMAIN.names])
        for name, (attribute, kind) in PICTURES.items():
            figure = Figure(figsize=(6.4, 2.6), layout="constrained")
            axes = session.histogram(attribute).plot(figure.add_subplot(), kind=kind)
            axes.set_title("")
            found.append(folder / f"{name}.png")
            figure.savefig(found[-1], dpi=80, metadata={"Software": None})
    return found


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    draw()
