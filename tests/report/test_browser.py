"""The report in a real browser: headless Chromium, on a desk and on a phone. Screenshots go to build/screenshots."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import unbraid as ub
from report_pages import hostile_fit

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
REQUIRED = os.environ.get("UNBRAID_REQUIRE_BROWSER") == "1"
pytestmark = pytest.mark.skipif(
    not REQUIRED and (CHROMIUM is None or DRIVER is None),
    reason="chromium and chromedriver are not installed (Debian: chromium, chromium-driver)",
)
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
DESK, PHONE, SMALL_PHONE, TALL = (1280, 900), (390, 844), (360, 640), (1280, 1700)
SEEN = """
const shown = one => one.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
return Array.from(document.querySelectorAll(arguments[0])).filter(shown);
"""
PLACES = """
return arguments[0].map(one => {
    const box = one.getBoundingClientRect(), around = one.closest(".scroll");
    return {width: box.width, height: box.height, right: box.right, inside: around !== null && around !== one};
});
"""
"""Asked for all elements at once: each question to a browser takes its time."""
widths = pytest.mark.parametrize("size", [DESK, PHONE, SMALL_PHONE], ids=["desk", "phone", "small-phone"])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser with an empty profile, which may not look for a driver by itself."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    assert CHROMIUM is not None, "chromium is not installed: apt-get install chromium"
    assert DRIVER is not None, "chromedriver is not installed: apt-get install chromium-driver"
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(executable_path=DRIVER))
    yield chrome
    chrome.quit()


class Pages:
    """Reports: that of f_trig, beside the truth, and others, each made when a test first asks for it.

    Tests may be spread over processes.
    """

    def __init__(self, folder: Path, trig: Path) -> None:
        self._folder, self._trig = folder, trig

    def __getitem__(self, name: str) -> Path:
        if name == "trig":
            return self._trig
        path = self._folder / f"{name}.html"
        if not path.exists():
            {"many": many_page, "hostile": hostile_page}[name](path)
        return path


def many_page(path: Path) -> None:
    """Many inputs, branches and outputs, fitted in a hurry."""
    problem, _ = ub.datasets.random_system(n=30, m=30, r=20, S=100, kind="sine", rng=0)
    quick = ub.methods.default(max_sweeps=5, polish=False)
    ub.decouple(problem, 20, basis=ub.BSpline(df=8), method=quick, starts=1, rng=0).report(path)


def hostile_page(path: Path) -> None:
    """Names with markup in them."""
    hostile_fit().report(path)


@pytest.fixture(scope="module")
def pages(page_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return Pages(tmp_path_factory.mktemp("pages"), page_file)


def opened(browser: Chrome, page: Path, size: tuple[int, int]) -> list[dict[str, Any]]:
    """Open a page in a window of that size; what the browser had to say about it."""
    width, height = size
    window = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    for kind in ("browser", "performance"):
        logged(browser, kind)  # what earlier pages left
    browser.get(page.as_uri())
    return logged(browser, "browser")


def logged(browser: Chrome, kind: str) -> list[dict[str, Any]]:
    """What was logged since the last time."""
    entries: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return entries


def keep_screenshot(browser: Chrome, name: str, whole: bool = True) -> None:
    """An artefact to look at; of the whole page only where nothing is lit, for it moves the page under the pointer."""
    settings: dict[str, Any] = {}
    if whole:
        size = browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        settings = {"captureBeyondViewport": True, "clip": clip}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", settings)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


def seen(browser: Chrome, selector: str) -> list[WebElement]:
    """The elements that are on the screen: of the two diagrams one is hidden."""
    found: list[WebElement] = browser.execute_script(SEEN, selector)
    return found


def until(browser: Chrome, condition: Callable[[], bool]) -> None:
    """Wait for a transition to end."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 10, poll_frequency=0.05).until(lambda _: condition())


def opacity(element: WebElement) -> float:
    return float(element.value_of_css_property("opacity"))


@widths
@pytest.mark.parametrize("name", ["trig", "many", "hostile"])
def test_the_page_opens_without_a_complaint_and_fits_the_screen(
    browser: Chrome, pages: Pages, name: str, size: tuple[int, int]
) -> None:
    assert opened(browser, pages[name], size) == []
    across = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    keep_screenshot(browser, f"{name}-{size[0]}")
    assert across[0] <= across[1] == size[0]
    for figure in browser.execute_script(PLACES, seen(browser, "svg.plot, figure.diagram svg")):
        assert figure["width"] > 200
        assert figure["height"] > 120
    for figure in browser.execute_script(PLACES, seen(browser, "svg.plot, figure.diagram svg, .scroll")):
        assert figure["inside"] or figure["right"] <= size[0]
    assert len(seen(browser, "figure.diagram svg")) == 1


def test_nothing_is_asked_for_but_the_page_itself(browser: Chrome, pages: Pages) -> None:
    opened(browser, pages["trig"], DESK)
    asked = [
        re.findall(r'"url":"([^"]+)"', entry["message"])
        for entry in logged(browser, "performance")
        if '"Network.requestWillBeSent"' in entry["message"]
    ]
    urls = {url for found in asked for url in found if not url.startswith("data:")}
    assert urls == {pages["trig"].as_uri()}


@pytest.mark.parametrize("what", [".box", ".card"], ids=["diagram", "list"])
def test_pointing_at_a_branch_lights_it_up_through_the_diagram(browser: Chrome, pages: Pages, what: str) -> None:
    from selenium.webdriver import ActionChains

    opened(browser, pages["trig"], TALL)
    [other] = seen(browser, '.box[data-branch="0"]')
    own, foreign = seen(browser, '.edge[data-branch="1"]'), seen(browser, '.edge[data-branch="0"]')
    assert len(own) == len(foreign) == 4
    before = [opacity(edge) for edge in foreign]
    [target] = seen(browser, f'{what}[data-branch="1"]')
    ActionChains(browser).move_to_element(target).perform()
    until(browser, lambda: all(opacity(edge) == 1.0 for edge in own) and all(opacity(one) < 0.1 for one in foreign))
    assert opacity(other) < 0.5
    [card] = seen(browser, '.card[data-branch="1"]')
    assert "on" in (card.get_attribute("class") or "").split()
    [says] = seen(browser, ".says")
    assert says.text.startswith("Branch 2, ")
    assert re.search(r"driven by x[₁₂] \(", says.text), "which one it is depends on how branches are ordered"
    keep_screenshot(browser, f"trig-pointing-at-{what[1:]}", whole=False)
    [title] = seen(browser, "h1")
    ActionChains(browser).move_to_element(title).perform()
    until(browser, lambda: [round(opacity(edge), 2) for edge in foreign] == [round(one, 2) for one in before])
    assert "on" not in (card.get_attribute("class") or "").split()


def test_weak_edges_show_when_their_branch_is_lit(browser: Chrome, pages: Pages) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    opened(browser, pages["many"], TALL)
    weak = browser.find_elements(By.CSS_SELECTOR, '.diagram-wide .edge.weak[data-branch="3"]')
    assert weak
    assert {edge.value_of_css_property("visibility") for edge in weak} == {"hidden"}
    [box] = seen(browser, '.box[data-branch="3"]')
    ActionChains(browser).move_to_element(box).perform()
    until(browser, lambda: {edge.value_of_css_property("visibility") for edge in weak} == {"visible"})
    keep_screenshot(browser, "many-pointing", whole=False)


def test_the_keyboard_reaches_every_branch(browser: Chrome, pages: Pages) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["trig"], DESK)
    [says] = seen(browser, ".says")
    for branch in ("Branch 1, ", "Branch 2, ", "Branch 3, "):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        assert says.text.startswith(branch)
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    [pressed] = seen(browser, '.box[aria-pressed="true"]')
    assert pressed.get_attribute("data-branch") == "2"
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert seen(browser, '.box[aria-pressed="true"]') == []
    assert says.text.startswith("Point at a branch")


def test_a_tap_lights_a_branch_until_the_next_tap_elsewhere(browser: Chrome, pages: Pages) -> None:
    opened(browser, pages["trig"], PHONE)
    [box] = seen(browser, '.box[data-branch="2"]')
    box.click()
    [says] = seen(browser, ".says")
    assert says.text.startswith("Branch 3, ")
    below = browser.execute_script("return arguments[0].getBoundingClientRect().bottom - window.innerHeight", says)
    assert below <= 1.0, "what is lit is told where it can be seen"
    keep_screenshot(browser, "trig-tapped", whole=False)
    [title] = seen(browser, "h1")
    title.click()
    assert says.text.startswith("Point at a branch")


def test_names_run_no_code(browser: Chrome, pages: Pages) -> None:
    opened(browser, pages["hostile"], DESK)
    assert len(browser.execute_script("return Array.from(document.scripts)")) == 1
    [label] = [one for one in seen(browser, ".node text") if one.text.startswith("<script>")][:1]
    assert label.text.startswith("<script>alert(1)")


def test_the_page_prints_with_whole_figures(browser: Chrome, pages: Pages) -> None:
    opened(browser, pages["trig"], DESK)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.7})
    document = base64.b64decode(printed["data"])
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / "trig-print.pdf").write_bytes(document)
    assert document.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 6
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert seen(browser, ".says") == []
        for figure in seen(browser, "figure, .card"):
            assert figure.value_of_css_property("break-inside") == "avoid"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_many_branches_print_without_half_empty_pages(browser: Chrome, tmp_path: Path) -> None:
    """Twelve cards are two pages, six each; the diagram is on the first page, and four more pages have all else."""
    problem, _ = ub.datasets.random_system(n=6, m=8, r=12, S=300, rng=0)
    fit = ub.decouple(problem, 12, basis=ub.Polynomial(3), starts=2, rng=0)
    fit.report(tmp_path / "twelve.html")
    opened(browser, tmp_path / "twelve.html", DESK)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.7})
    document = base64.b64decode(printed["data"])
    (SCREENSHOTS / "twelve-print.pdf").write_bytes(document)
    assert len(re.findall(rb"/Type\s*/Page\b", document)) <= 7  # ten, where a page had two cards


def test_a_dark_screen_gets_a_dark_page_with_light_figures(browser: Chrome, pages: Pages) -> None:
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        opened(browser, pages["trig"], DESK)
        keep_screenshot(browser, "trig-dark")
        [body] = seen(browser, "body")
        tick = seen(browser, "svg.plot text")[0]
        assert luminance(body.value_of_css_property("background-color")) < 0.1
        assert luminance(tick.value_of_css_property("fill")) > 0.5
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def luminance(colour: str) -> float:
    """0 for black, 1 for white, of 'rgb(…)' or 'rgba(…)'."""
    red, green, blue = (float(part) / 255.0 for part in re.findall(r"[\d.]+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_notebook_cell_shows_the_fit(browser: Chrome, tmp_path: Path) -> None:
    view = hostile_fit()._repr_html_()
    assert view is not None
    page = tmp_path / "cell.html"
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8><body><h1>Not its own</h1>{view}</body>", encoding="utf-8")
    assert opened(browser, page, (800, 600)) == []
    keep_screenshot(browser, "notebook")
    assert len(seen(browser, ".unbraid-cell .box")) == 2
    [title] = seen(browser, "h1")
    assert "Times" in title.value_of_css_property("font-family"), "the view's style reaches beyond it"
