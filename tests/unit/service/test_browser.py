"""The page in a real browser: asked by form and in SQL, and hostile labels that stay text.

By `make browser`, with Chromium of the system's packages.
"""

import http.client
import shutil
from pathlib import Path

import numpy as np
import pytest

import onlineic as ic
from onlineic.periods import ServedPeriods
from support.events import FOR_EVER
from support.served import served, stalled

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
    page.evaluate("document.getElementById('result').replaceChildren()")
    page.click("#ask button[value=ask]")
    page.wait_for_selector(".card.answer")
    return page.inner_text("#result")


def accessible(page):
    """What a checker of accessibility finds wrong, by rule."""
    axe = pytest.importorskip("axe_playwright_python", reason="the page is checked by axe-playwright-python")
    line = page.context.new_cdp_session(page)
    line.send("Page.setBypassCSP", {"enabled": True})
    page.reload()
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    line.send("Page.setBypassCSP", {"enabled": False})
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]


def test_a_question_is_explained_asked_and_listed(page):
    page.select_option("[name=a0]", "sex")
    page.fill("[name=v0]", "F")
    page.click("#ask button[value=explain]")
    page.wait_for_selector(".card.explain")
    assert "It asks for 1 number" in page.inner_text("#result")
    assert "each with 95 %" in asked(page, kind="count")
    assert "records where sex is F" in page.inner_text("main")
    assert "Of your share" in page.inner_text("#left-own")
    assert "Records where sex is F" in page.inner_text(".history")


def test_the_answer_has_the_focus_and_an_address(page):
    asked(page, kind="count", a0="sex", v0="M")
    assert "answered" == page.evaluate("document.activeElement.id")
    address = page.url
    assert "a0=sex" in address
    page.reload()
    page.wait_for_selector(".card.answer")
    asked(page, kind="count", a0="sex", v0="F")
    page.go_back()
    page.wait_for_selector(".card.answer >> text=sex is M")
    assert address == page.url


def test_an_error_has_the_focus_beside_its_field(page):
    page.select_option("[name=a0]", "sex")
    page.fill("[name=v0]", "x")
    page.click("#ask button[value=ask]")
    page.wait_for_selector("#wrong-v0")
    assert "v0" == page.evaluate("document.activeElement.id")
    assert "x" == page.input_value("#v0")
    assert [] == accessible(page)


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
    assert not page.is_visible("#v0")
    page.select_option("#kind", "mean")
    assert page.is_visible("#of")
    assert not page.is_visible("#by")
    page.select_option("#a0", "age")
    assert page.is_visible("#v0")
    assert not page.is_visible("#w0")
    page.select_option("#o0", "between")
    assert page.is_visible("#w0")


def test_each_attribute_offers_its_own_values(page):
    page.select_option("#a0", "sex")
    assert ["F", "M"] == page.evaluate(
        "[...document.getElementById('v0').list.options].map(one => one.value)"
    )
    page.select_option("#a0", "age")
    assert "20" == page.evaluate("document.getElementById('v0').list.options[0].value")


def test_what_is_the_same_in_sql_can_be_copied(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    asked(page, kind="count", a0="sex", v0="F")
    page.click(".again summary")
    page.click(".copy >> nth=0")
    page.wait_for_selector(".copy >> text=Copied")
    assert "SELECT COUNT(*) FROM t WHERE sex = 'F'" == page.evaluate("navigator.clipboard.readText()")


def test_a_result_is_saved_as_a_file(page):
    asked(page, kind="table", of="age")
    for name in ("CSV", "JSON"):
        with page.expect_download() as saved:
            page.click(f"#result a:has-text('{name}')")
        assert saved.value.path().read_text(encoding="utf-8")


def test_waiting_says_so_and_can_be_stopped(visited, page, monkeypatch):
    """The thread that answers is busy with a summary, until a question of the page was given up."""
    held, free = stalled(monkeypatch)
    server = visited[1]
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=FOR_EVER)
    line.request("GET", "/v1/summary?answers=3", headers={"Authorization": f"Bearer {server.tokens['bob']}"})
    assert held.wait(FOR_EVER)
    try:
        page.fill("#text", "SELECT COUNT(*) FROM t WHERE age > 21 AND sex = 'M'")
        page.click("#sql button[value=ask]")
        page.wait_for_selector("#sql .waiting:visible >> text=Asking, for")
        assert "true" == page.get_attribute("main", "aria-busy")
        assert page.is_disabled("#sql button[value=ask]")
        page.keyboard.press("Escape")
        page.wait_for_selector("#sql .waiting:visible >> text=You stopped waiting")
        assert page.is_enabled("#sql button[value=ask]")
        assert None is page.get_attribute("main", "aria-busy")
    finally:
        free.set()
        line.getresponse().read()
        line.close()
    page.click("#sql button[value=ask]")
    page.wait_for_selector(".card.answer")


def test_eight_open_pages_do_not_keep_one_from_asking(visited, page):
    """A browser gives one host six lines, and none of them may be held."""
    pages = [page, *(page.context.new_page() for _ in range(7))]
    for one in pages[1:]:
        one.set_default_timeout(1000 * FOR_EVER)
        one.goto(visited[1].url)
        one.wait_for_selector("#kind")
    for place, one in enumerate(pages):
        one.wait_for_function("document.querySelectorAll('#bar-all rect').length === 2")
        one.fill("#text", f"SELECT COUNT(*) FROM t WHERE age > {21 + place}")
        one.click("#sql button[value=ask]")
    for one in pages:
        one.wait_for_selector(".card.answer")
        if one is not page:
            one.close()


def test_what_was_typed_survives_the_end_of_a_visit(visited, page):
    page.select_option("[name=a0]", "sex")
    page.fill("[name=v0]", "F")
    page.context.clear_cookies()
    page.click("#ask button[value=ask]")
    page.wait_for_selector("#token")
    page.fill("#token", visited[1].tokens["ann"])
    page.click("button")
    page.wait_for_selector("#kind")
    assert ("sex", "F") == (page.input_value("#a0"), page.input_value("#v0"))


def test_a_curator_sees_users_and_who_asked(page):
    asked(page, kind="count", a0="sex", v0="F")
    page.click("header a >> text=Users")
    page.wait_for_selector("text=Who may ask")
    assert {"ann", "bob"} <= set(page.inner_text("main").split())
    assert [] == accessible(page)
    page.click("header a")
    page.wait_for_selector("#kind")


def test_tables_are_drawn_and_statements_answered(page):
    asked(page, kind="table", of="age")
    assert page.locator("#result svg rect").count() >= 20
    assert [] == accessible(page)
    asked(page, kind="table", of="age", by="sex")
    assert 40 == page.locator("#result table.heat td").count()
    assert [] == accessible(page)
    page.fill("#text", "SELECT sex, COUNT(*), AVG(age) FROM t GROUP BY sex")
    page.click("#sql button[value=ask]")
    page.wait_for_selector(".card.answer table.numbers")
    assert "F" in page.inner_text("#result table")
    assert [] == accessible(page)


@pytest.mark.parametrize("path", ["/", "/help", "/mine", "/nothing"])
def test_a_screen_reader_finds_its_way(page, path):
    page.goto(page.url.split("/?")[0].rstrip("/") + path)
    assert [] == accessible(page)
    page.emulate_media(color_scheme="dark")
    assert [] == accessible(page)


def test_the_keyboard_is_enough(page):
    page.select_option("[name=a0]", "sex")
    page.focus("[name=v0]")
    page.keyboard.type("M")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card.explain")  # the first button, which asks nothing
    page.focus("#ask button[value=ask]")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card.answer")


def test_without_scripts_everything_works(visited):
    browser, server = visited
    context = browser.new_context(java_script_enabled=False, viewport={"width": 400, "height": 800})
    page = context.new_page()
    page.set_default_timeout(1000 * FOR_EVER)
    page.goto(server.url)
    page.fill("#token", server.tokens["ann"])
    page.click("button")
    page.select_option("#a0", "age")
    page.select_option("#o0", "between")
    page.fill("#v0", "22")
    page.fill("#w0", "30")
    page.click("#ask button[value=explain]")
    page.wait_for_selector(".card.explain")
    page.click("#ask button[value=ask]")
    page.wait_for_selector(".card.answer")
    assert "age is from 22 to 30" in page.inner_text("#result")
    page.fill("#text", "nonsense")
    page.click("#sql button[value=ask]")
    page.wait_for_selector("#wrong-text")
    context.close()


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
    page.select_option("[name=a0]", "age")
    page.fill("[name=v0]", "30")
    page.select_option("[name=o0]", "below")

    said = asked(page, kind="series", a0="age")
    with page.expect_download() as saved:
        page.click("#result >> text=This result as CSV")
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


def test_how_exact_is_typed_priced_and_paid(page):
    page.select_option("#kind", "mean")
    page.select_option("#of", "age")
    assert "in the unit of age" == page.inner_text("#unit option[value=own]")
    page.select_option("#kind", "count")
    page.select_option("[name=a0]", "age")
    page.fill("#v0", "25")
    page.fill("#exact", "x")
    page.focus("#exact")
    page.keyboard.press("Enter")  # explains
    page.wait_for_selector("#wrong-exact")
    assert "exact" == page.evaluate("document.activeElement.id")
    page.fill("#exact", "2")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card.explain")
    assert "provably within 2 % of all records" in page.inner_text("#result")
    assert [] == accessible(page)
    page.click("#ask button[value=ask]")
    page.wait_for_selector(".card.answer")
    assert "You asked for it provably within 2 % of all records" in page.inner_text("#result")
    assert "2" == page.input_value("#exact")
    assert "" == page.input_value("#sql-exact")
