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

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).resolve().parent / "pictures"
ADDRESS = "http://127.0.0.1:8765"


def main() -> None:
    """Write explain.png, answer.png and table.png."""
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
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(ADDRESS)
        page.fill("#token", token)
        page.click("button")
        page.select_option("[name=a0]", "sex")
        page.fill("[name=v0]", "Female")
        page.click("#ask button[value=explain]")
        page.wait_for_selector(".card.explain")
        page.screenshot(path=str(FOLDER / "explain.png"))
        page.click("#ask button[value=ask]")
        page.wait_for_selector(".card.answer")
        page.screenshot(path=str(FOLDER / "answer.png"))
        page.fill("#text", "SELECT sex, race, COUNT(*) FROM t GROUP BY sex, race")
        page.click("#sql button[value=ask]")
        page.wait_for_selector("#result table")
        page.screenshot(path=str(FOLDER / "table.png"))
        browser.close()


if __name__ == "__main__":
    main()
