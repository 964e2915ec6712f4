"""The page in a real browser: asked by form and in SQL, and hostile labels that stay text.

By `make browser`, with Chromium of the system's packages.
"""

import shutil

import numpy as np
import pytest

import onlineic as ic
from onlineic.periods import ServedPeriods
from support.events import FOR_EVER
from support.served import served

pytestmark = pytest.mark.browser
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = [
    "</script><script>window.bad=1</script>",
    '"><img src=x onerror="window.bad=1">',
    "\u202eevil",
    "x" * 10_000,
]
DOMAIN = ic.Domain.of(age=range(20, 40), label=HOSTILE, sex=["F", "M"])
TABLE = np.random.default_rng(1).multinomial(40_000, np.full(160, 1 / 160)).reshape(DOMAIN.shape)


@pytest.fixture(scope="module")
def visited(tmp_path_factory):
    """(browser, url, token), or the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("the page is tested in Chromium: apt-get install chromium")
    api = pytest.importorskip(
        "playwright.sync_api", reason="the page is tested by playwright: pip install playwright"
    )
    folder = tmp_path_factory.mktemp("browser")
    data = ic.PrivateData(TABLE, DOMAIN)
    session = ic.OnlineIC(data, ic.Budget(1.0, 1e-6), ledger=folder / "a.db", table="t", durability="all")
    with served(session, folder, curators=frozenset({"ann"})) as server, api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser, server
        browser.close()


@pytest.fixture(params=[1280, 400], ids=["wide", "narrow"])
def page(visited, request):
    browser, server = visited
    context = browser.new_context(viewport={"width": request.param, "height": 800})
    found = context.new_page()
    found.set_default_timeout(1000 * FOR_EVER)
    found.broken = []
    found.on(
        "console", lambda said: found.broken.append(said.text) if "Content Security" in said.text else None
    )
    found.on("pageerror", lambda error: found.broken.append(str(error)))
    found.goto(server.url)
    found.fill("#token", server.tokens["ann"])
    found.click("button")
    found.wait_for_selector("#kind")
    yield found
    assert [] == found.broken
    assert None is found.evaluate("window.bad ?? null")
    assert found.evaluate("document.documentElement.scrollWidth") <= request.param
    context.close()


def asked(page, **fields):
    for name, value in fields.items():
        field = page.locator(f"#ask [name={name}]")
        field.select_option(value) if field.evaluate("one => one.tagName") == "SELECT" else field.fill(value)
    page.click("#ask button[value=ask]")
    page.wait_for_selector(".card.answer")
    return page.inner_text("#result")


def test_a_question_is_explained_asked_and_listed(page):
    page.select_option("[name=a0]", "sex")
    page.fill("[name=v0]", "F")
    page.click("#ask button[value=explain]")
    page.wait_for_selector(".card.explain")
    assert "expected bound" in page.inner_text("#result")
    assert "with probability 0.95" in asked(page, kind="count")
    assert "where(sex='F')" in page.inner_text("main")
    assert "measured answers" in page.inner_text("#left-all")


def test_the_gauge_hears_of_what_others_were_answered(visited, page):
    server = visited[1]
    page.wait_for_function("document.querySelectorAll('#bar-all rect').length === 2")
    with ic.connect(server.url, server.tokens["bob"]) as other:
        before = other.statistics().asked
        low = 20 + before % 10
        while other.answer({"age": [low, low + 9], "sex": "M"}).status == "repeat":
            low += 1
    page.wait_for_selector("#news:not([hidden])")


def test_only_what_a_question_needs_is_shown(page):
    page.select_option("#kind", "count")
    assert not page.is_visible("#of")
    page.select_option("#kind", "mean")
    assert page.is_visible("#of")
    assert not page.is_visible("#by")


def test_a_curator_sees_users_and_who_asked(page):
    asked(page, kind="count", a0="sex", v0="F")
    page.click("header a")
    page.wait_for_selector("text=Who may ask")
    assert {"ann", "bob"} <= set(page.inner_text("main").split())
    page.click("header a")
    page.wait_for_selector("#kind")


def test_tables_are_drawn_and_statements_answered(page):
    asked(page, kind="table", of="age")
    assert page.locator("#result svg rect").count() >= 20
    asked(page, kind="table", of="age", by="sex")
    assert 40 == page.locator("#result table.heat td").count()
    page.fill("#text", "SELECT sex, COUNT(*), AVG(age) FROM t GROUP BY sex")
    page.click("#sql button[value=ask]")
    page.wait_for_selector(".card.answer table")
    assert "F" in page.inner_text("#result table")


def test_the_keyboard_is_enough(page):
    page.focus("#kind")
    page.select_option("[name=a0]", "sex")
    page.focus("[name=v0]")
    page.keyboard.type("M")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card.explain, .card.answer")


def test_hostile_labels_stay_text(page):
    asked(page, kind="table", of="label")
    asked(page, kind="table", of="label", by="sex")
    for label in HOSTILE[:3]:
        asked(page, kind="count", a0="label", v0=label)
    assert 0 == page.locator("img").count()
    assert 1 == page.locator("script").count()


def test_a_visit_ends(page):
    page.click(".leave button")
    page.wait_for_selector("#token")


@pytest.fixture(scope="module")
def over_time(tmp_path_factory, visited):
    """A server of periods, of which one is late."""
    folder = tmp_path_factory.mktemp("periods")
    labels = [f"2025-{month:02}" for month in range(1, 13)]
    domain = ic.Domain.of(age=range(20, 40), label=HOSTILE)

    def load(label):
        draw = np.random.default_rng(labels.index(label))
        return ic.PrivateData(draw.multinomial(6_000, np.full(80, 1 / 80)), domain)

    path = folder / "t.db"
    with ic.Periods(path, domain, ic.Budget(1.0, 1e-6), table="t", max_queries=100) as held:
        for label in labels:
            held.add(label, load(label), late=label == "2025-03")
        held.close("2025")
    grown = ServedPeriods(ic.Periods.resume(path, load=load, durability="all"))
    with served(grown, folder) as server:
        yield server


@pytest.mark.filterwarnings("ignore::onlineic.errors.WideBoundWarning")
@pytest.mark.parametrize("width", [1280, 400])
def test_a_time_series_is_drawn_with_whiskers_and_saved(over_time, visited, width):
    context = visited[0].new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    broken = []
    page.on("console", lambda said: broken.append(said.text) if "Content Security" in said.text else None)
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(over_time.url)
    page.fill("#token", over_time.tokens["ann"])
    page.click("button")
    page.wait_for_selector("#kind")
    page.select_option("#since", "2025-02")
    page.select_option("#until", "2025-04")
    page.fill("[name=v0]", "30")
    page.select_option("[name=o0]", "below")

    said = asked(page, kind="series", a0="age")
    with page.expect_download() as saved:
        page.click("#result >> text=As CSV")
    lines = saved.value.path().read_text().splitlines()

    assert "Records by month where age is below 30" in said
    assert not page.is_visible("#of")
    assert 3 == page.locator("#result svg g rect").count()
    assert ["month", "2025-02", "2025-03", "2025-04"] == [line.split(",")[0] for line in lines]
    assert "late rows of earlier ones" in page.text_content("main")
    assert [] == broken
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert None is page.evaluate("window.bad ?? null")
    context.close()
