"""A notebook, run headless: objects show themselves as HTML, figures as pictures, mistakes as a few lines.

NOTEBOOK=FILE.ipynb keeps what was run.
"""

import base64
import os
import re
from pathlib import Path

import pytest

import onlineic
from support.events import FOR_EVER

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.slow

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
report = ic.PrivateData.check({**records, "sex": np.full(data.n, "<script>")}, domain)
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
    "table": "data",
    "statistics": "session.statistics()",
    "check": "report",
    "curator's report": "report.curator_report()",
}
DRAWN = {
    "histogram": "session.histogram('age').plot()",
    "its figure": "session.histogram('age').plot().figure",
    "map": "session.answer(ic.marginal('education_num', 'income')).plot()",
    "distribution": "session.cdf('age').plot()",
    "belief": "session.summary().plot('age')",
    "errors": "ic.evaluate.plot_marginal(ic.evaluate.new_figure(4, 3).add_subplot(), [1], [.5], [.5])",
    "with pyplot": "import matplotlib.pyplot\nsession.histogram('age').plot()",
    "its figure with pyplot": "session.histogram('age').plot().figure",
    "on axes of pyplot": "axes = session.histogram('age').plot(matplotlib.pyplot.gca())",
}


@pytest.fixture(scope="module")
def cells():
    sources = [SETUP, *SHOWN.values(), *DRAWN.values(), "session.answer(ic.where(agge=30))"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = nbclient.NotebookClient(book, timeout=FOR_EVER, kernel_name="python3", allow_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(onlineic.__file__).parent.parent))
        client.execute()
    if "NOTEBOOK" in os.environ:
        nbformat.write(book, os.environ["NOTEBOOK"])
    return book.cells


def shown_by(cells, names):
    """Return what the cells of these names show by themselves, by type, beside the names."""
    for name, cell in zip(names, cells, strict=True):
        (output,) = [one for one in cell.outputs if one.output_type != "stream"]

        assert output.output_type in ("execute_result", "display_data"), (name, output)
        yield name, output.data


def test_every_object_shows_itself_as_html(cells):
    assert [] == cells[0].outputs
    for name, data in shown_by(cells[1 : 1 + len(SHOWN)], SHOWN):
        text = "".join(data["text/html"])

        assert text.startswith(("<div", "<pre")), name
        assert len(text) < 20_000, name
        assert "<script" not in text, name
        assert data["text/plain"], name


def test_every_figure_shows_itself_as_a_picture(cells):
    for name, data in shown_by(cells[1 + len(SHOWN) : -1], DRAWN):
        assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG"), name


def test_a_mistake_is_shown_in_a_few_lines(cells):
    (output,) = cells[-1].outputs
    shown = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output.traceback))

    assert "InvalidQueryError" in shown
    assert "did you mean 'age'?" in shown
    assert "session.answer(ic.where(agge=30))" in shown
    assert len(shown.splitlines()) <= 6
