"""A notebook, run headless: every object shows itself as HTML, and a mistake as a few lines.

Needs `pip install nbclient ipykernel`; skipped without. NOTEBOOK=FILE.ipynb keeps what was run.
"""

import os
import re
from pathlib import Path

import pytest

from support.events import FOR_EVER

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning"
    ),
]

SETUP = """
import numpy as np
import onlineic as ic
from onlineic.datasets import adult5, adult5_domain
from onlineic.queries import Queries
columns, counts = adult5()
domain = adult5_domain()
records = {name: np.repeat(column, counts) for name, column in columns.items()}
data = ic.PrivateData.from_records(records, domain)
session = ic.OnlineIC(data, ic.Budget(1.0, 1e-9))
"""
SHOWN = {
    "domain": "domain",
    "session": "session",
    "plan": "session.plan",
    "forecast": "ic.forecast(domain, data.n, ic.Budget(1.0, 1e-9), 1000)",
    "answer": "session.answer(ic.where(age=ic.between(30, 50), sex='Female'))",
    "two-way table": "session.answer(ic.marginal('education_num', 'income'))",
    "histogram": "session.answer(ic.marginal('age'))",
    "batch": "session.answer_many(Queries.where(domain, {'age': (np.zeros(74, int), np.arange(1, 75))}))",
    "synthetic": "session.synthetic(1000)",
    "summary": "session.summary()",
}


@pytest.fixture(scope="module")
def cells():
    sources = [SETUP, *SHOWN.values(), "session.answer(ic.where(agge=30))"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = nbclient.NotebookClient(book, timeout=FOR_EVER, kernel_name="python3", allow_errors=True)
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
    client.execute()
    if "NOTEBOOK" in os.environ:
        nbformat.write(book, os.environ["NOTEBOOK"])
    return book.cells


def test_every_object_shows_itself_as_html(cells):
    assert [] == [output for output in cells[0].outputs if output.output_type == "error"]
    for name, cell in zip(SHOWN, cells[1:-1], strict=True):
        (output,) = [one for one in cell.outputs if one.output_type == "execute_result"]
        text = "".join(output.data["text/html"])

        assert text.startswith("<div"), name
        assert len(text) < 20_000, name
        assert "<script" not in text, name
        assert output.data["text/plain"], name


def test_a_mistake_is_shown_in_a_few_lines(cells):
    (output,) = cells[-1].outputs
    shown = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.traceback))

    assert "InvalidQueryError" in shown
    assert "did you mean 'age'?" in shown
    assert "session.answer(ic.where(agge=30))" in shown
    assert len(shown.splitlines()) <= 6
