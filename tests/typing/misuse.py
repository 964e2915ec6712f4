"""What a type checker must accept and refuse: `make lint` reads it, and an ignore without need fails."""

import numpy as np

import onlineic as ic
from onlineic import between, one_of, where

where(age=between(30, 50), sex="F", educ=None, score=0.5, active=True, region=np.int64(3))
where({"income>50K": one_of(1, 2), "region": ~between(1, 2)})

where(age=[1, 2])  # type: ignore[arg-type]  # two labels, or a range? neither
where(age=range(30, 50))  # type: ignore[arg-type]
where(["age"])  # type: ignore[arg-type]


def names_of_the_top(session: ic.OnlineIC) -> float:
    answer: ic.Answer = session.answer(where(sex="F"))
    assert ic.offline.mean
    assert ic.evaluate.compare
    return float(answer)
