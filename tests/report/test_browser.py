"""The page in a real browser: it opens without an error, sorts, and shows the structure of a point."""

import shutil
import time

import pytest

from forgefield.report import read_runs, write_report
from forgefield.report.table import WIDTH

# for scripts: elements of the page and of the shadow trees in it, in which Bokeh draws; and a plot by its name
HELPERS = """
const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])])
const texts = (name) => all(document).filter((e) => e.classList.contains(name)).map((e) => e.textContent.trim())
const plot = (name) => Bokeh.documents[0].get_model_by_name(name)
const values = (name) => plot(name).renderers[0].data_source
"""
# where a point is in the window
PLACE = """
const view = Bokeh.index.find_one(plot(arguments[0]))
const {x, y} = values(arguments[0]).data
const box = view.canvas_view.el.getBoundingClientRect()
const i = arguments[1]
return [box.x + view.frame.x_scale.compute(x[i]), box.y + view.frame.y_scale.compute(y[i])].map(Math.round)
"""


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium that cannot reach any host."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("no browser here; as root: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in (
        "--headless=new",
        "--no-sandbox",  # which refuses to run as root
        "--window-size=1400,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--enable-unsafe-swiftshader",  # WebGL without a GPU
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="module")
def page(browser, make_run, tmp_path_factory):
    """Asks the opened page of two runs by a script."""
    root = tmp_path_factory.mktemp("results")
    runs = [make_run(root, "slow", 40), make_run(root, "quick", 40, scale=2.0, lr=1e-2)]
    write_report(read_runs(runs), root / "report.html")
    browser.get((root / "report.html").as_uri())

    def ask(script, *arguments):
        return browser.execute_script(HELPERS + script, *arguments)

    wait_until(lambda: ask("return texts('slick-header-column').length > 0 && values('energy 0').data.x.length > 0"))
    return ask


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def column(page, number):
    """The texts of a column of the table, from top to bottom."""
    cells = "return all(document).filter((e) => e.classList.contains('slick-row'))"
    by_place = ".sort((a, b) => a.getBoundingClientRect().y - b.getBoundingClientRect().y)"
    return page(f"{cells}{by_place}.map((e) => e.children[{number}].textContent.trim())")


def test_it_opens_without_an_error(page, browser):
    entries = [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert [entry["message"] for entry in entries if "GL Driver Message" not in entry["message"]] == []


def test_the_table_fits_its_card_and_its_heads_are_whole(page):
    """Also with the columns of stresses, which these runs do not have."""
    free = "const card = document.querySelector('section'); return card.clientWidth - card.scrollWidth"
    assert page(free) == 0
    names = "all(document).filter((e) => e.classList.contains('slick-column-name'))"
    box = "const [a, b] = [e, e.parentElement].map((x) => x.getBoundingClientRect())"
    cut = f"{names}.filter((e) => {{ {box}; return a.right > b.right || a.bottom > b.bottom }})"
    assert page(f"return {cut}.map((e) => e.textContent)") == []
    assert page(f"return {names}.length") == 9
    width = page("return Bokeh.documents[0].get_model_by_name('runs').width") + 2 * WIDTH
    assert width <= page("return document.querySelector('section').clientWidth") - 40  # its padding


def test_a_click_on_a_head_sorts(page):
    heads = page("return texts('slick-header-column')")
    assert heads[:5] == ["run", "model", "split", "Energy MAE meV/atom", "Energy RMSE meV/atom"]
    click = "all(document).filter((e) => e.classList.contains('slick-header-column'))[3].click()"
    orders = []
    for _ in range(2):
        page(click)
        time.sleep(0.3)
        orders.append([float(text) for text in column(page, 3)])
    assert len(orders[0]) == 6
    assert sorted(orders, key=lambda order: order[0]) == [sorted(orders[0]), sorted(orders[0], reverse=True)]


def test_pointing_at_a_value_shows_its_structure(page, browser):
    page("Bokeh.documents[0].get_model_by_name('parity').active = 1")
    wait_until(lambda: page("return Bokeh.index.find_one(plot('forces 1'))?.frame.bbox.width > 0"))
    page("Bokeh.index.find_one(plot('forces 1')).el.scrollIntoView({block: 'center'})")
    farthest = "const {x} = values('forces 1').data; return x.indexOf(Math.max(...x))"
    point = page(farthest)
    structure, place = page(
        "const {structure, place} = values('forces 1').data; return [structure[arguments[0]], place[arguments[0]]]",
        point,
    )
    move(browser, *page(PLACE, "forces 1", point))
    wait_until(lambda: page("return texts('bk-tooltip-row-value').join()"))
    tip = page("return texts('bk-tooltip-row-value').join(' ')")
    formula = ["H2O", "CH4O"][structure % 2]
    file, frame = ("a.xyz", structure) if structure < 10 else ("b.xyz", structure - 10)
    assert f"{formula}, {file}, frame {frame}" in tip
    assert f"atom {place // 3} (" in tip


def test_a_click_marks_the_structure_in_both_plots(page, browser):
    point = page("const {x} = values('forces 1').data; return x.indexOf(Math.max(...x))")
    move(browser, *page(PLACE, "forces 1", point), click=True)
    wait_until(lambda: page("return values('forces 0').selected.indices.length"))
    marked = "const s = values(arguments[0]); return s.selected.indices.map((i) => s.data.structure[i])"
    structure = page("return values('forces 1').data.structure[arguments[0]]", point)
    atoms = [3, 6][structure % 2]
    for name in ("forces 0", "forces 1"):
        assert page(marked, name) == [structure] * 3 * atoms
    details = " ".join(page("return texts('bk-clearfix')"))
    assert f"atoms{atoms}" in details
    assert f"index in the split{structure}" in details


def test_another_run_can_be_chosen(page):
    before = page("return values('forces 1').data.y[0]")
    page("Bokeh.documents[0].get_model_by_name('forces 1 choice').value = '1:finetuned'")
    after, reference = page("const {x, y} = values('forces 1').data; return [y[0], x[0]]")
    assert after - reference == pytest.approx(2 * (before - reference), rel=1e-3)


def move(browser, x, y, click=False):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.action_builder import ActionBuilder

    actions = ActionBuilder(browser)
    actions.pointer_action.move_to_location(x - 1, y).move_to_location(x, y)
    if click:
        actions.pointer_action.click()
    actions.perform()
    ActionChains(browser).pause(0.2).perform()
