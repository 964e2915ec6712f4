"""Take the pictures of the page that the guide shows, of a server that `make serve-demo` starts.

    make pictures

Needs Chromium. Numbers in the pictures are private answers, and others each time.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).resolve().parent / "pictures"
ADDRESS = "http://127.0.0.1:8765"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 400, "height": 860}
LISTED = "SELECT sex, race, COUNT(*), AVG(age) FROM t GROUP BY sex, race"


def main() -> None:
    """Write explain.png, answer.png, table.png, bars.png, phone.png and dark.png."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("the pictures are taken in Chromium: apt-get install chromium")
    FOLDER.mkdir(exist_ok=True)
    with subprocess.Popen(
        ["make", "serve-demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as server:
        token = ""
        for line in server.stdout or ():
            token = found[1] if (found := re.search(r"the token (\S+)", line)) else token
            if "serving on" in line:
                break
        time.sleep(1.0)
        try:
            taken(token, chromium)
        finally:
            os.killpg(server.pid, signal.SIGTERM)


def taken(token: str, chromium: str) -> None:
    """Log in, ask, and take the pictures."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = visited(browser, token, viewport=DESKTOP)
        page.select_option("[name=a0]", "sex")
        page.fill("[name=v0]", "Female")
        page.fill("#exact", "0.5")
        page.click("#ask button[value=explain]")
        page.wait_for_selector(".card.explain")
        pictured(page, "explain")
        page.click("#ask button[value=ask]")
        page.wait_for_selector(".card.answer")
        pictured(page, "answer")
        page.fill("#text", LISTED)
        page.click("#sql button[value=ask]")
        page.wait_for_selector("#result table")
        pictured(page, "table")
        page.goto(ADDRESS)
        page.select_option("#kind", "table")
        page.select_option("#of", "education_num")
        page.click("#ask button[value=ask]")
        page.wait_for_selector("#result svg")
        pictured(page, "bars")
        asked = page.url
        for name, more in (
            ("phone", {"viewport": PHONE, "device_scale_factor": 2}),
            ("dark", {"viewport": DESKTOP, "color_scheme": "dark"}),
        ):
            other = visited(browser, token, **more)
            other.goto(asked)
            other.wait_for_selector("#result svg")
            pictured(other, name)
        browser.close()


def visited(browser: Any, token: str, **more: Any) -> Any:
    """Return the page of a visit of its own."""
    page = browser.new_context(**more).new_page()
    page.goto(ADDRESS)
    page.fill("#token", token)
    page.click("button")
    page.wait_for_selector("#kind")
    return page


def pictured(page: Any, name: str) -> None:
    """Write what is seen of a page, from its top."""
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.screenshot(path=str(FOLDER / f"{name}.png"))


if __name__ == "__main__":
    main()
