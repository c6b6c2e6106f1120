"""The page in a browser: typing, attention, sliders, files, keyboard, widths, dark mode.

Screenshots are in the folder that TF_TRANSFORMER_SCREENSHOTS names, else in one of pytest's.
"""

import os
import pathlib
import threading
import time

import pytest
from html_checker import HtmlChecker

from tf_transformer.commands.demo import load
from tf_transformer.commands.web_server import listen
from tf_transformer.demo.app import PAGE, make_app
from tf_transformer.inference.predictor import Prediction
from tf_transformer.serving.models import TextModel

pytestmark = pytest.mark.browser

FIRST, SECOND = "Where is the train station?", "I have never seen such a beautiful house."


@pytest.fixture(scope="module")
def translator(browser):  # without a browser no model is loaded
    """The first model of a demo without options."""
    return load("", "", "", "", "", "float32")[0]


class Reversed(TextModel):
    """A second model, which reverses each line."""

    name, languages, limits = "mirror", ("de", "en"), "It reverses each line."
    samples = ("abc",)

    def n_best(self, texts, options):
        return [[Prediction(text[::-1], -1.0)] for text in texts]


@pytest.fixture(scope="module")
def server(translator):
    """Serves the page from a thread."""
    import uvicorn

    listener = listen("127.0.0.1", 0)
    started = uvicorn.Server(
        uvicorn.Config(make_app([translator, Reversed()]), log_level="warning")
    )
    thread = threading.Thread(target=started.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    started.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory):
    named = os.environ.get("TF_TRANSFORMER_SCREENSHOTS")
    folder = pathlib.Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Page:
    """The page in a browser: typing, pointing, the keyboard, narrow and dark windows."""

    def __init__(self, driver, url):
        self.driver = driver
        self.url = url

    def open(self):
        """Opens the page as in a new tab."""
        self.driver.get(self.url)
        self.driver.execute_script("sessionStorage.clear()")
        self.driver.get(self.url)
        self.set_size(1100, 900)
        self.set_scheme("light")
        self.until(lambda: self.driver.title != "Translate")
        return self

    def set_size(self, width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def set_scheme(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def paste(self, text):
        script = "document.querySelector('#source').value = arguments[0]; changed(0)"
        self.driver.execute_script(script, text)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector):
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
        return self.driver.execute_script(script, selector)

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, f"{self.texts('#error')}, {self.texts('#status')}"
            time.sleep(0.05)
        return found

    def type(self, *texts):
        self.one("#source").send_keys("\n".join(texts))
        return self

    def is_idle(self):
        """Whether all lines are translated and aligned, and nothing is asked for."""
        script = """return !working && !document.querySelector('.pending')
            && lines().filter(is_asked).every(line => found(line)?.weights[found(line).chosen])"""
        return self.driver.execute_script(script)

    def translations(self):
        self.until(self.is_idle)
        return self.texts("#target p")

    def linked(self, side):
        """The words of a side that are highlighted, with their weights."""
        script = """return [...document.querySelectorAll(`#${arguments[0]} .word`)]
            .map(e => Number(e.style.getPropertyValue('--weight')))"""
        return self.driver.execute_script(script, side)

    def hover(self, element):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).move_to_element(element).perform()

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def move(self, name, value):
        """Moves a slider as a user does: the browser sends its events."""
        script = """arguments[0].value = arguments[1];
            arguments[0].dispatchEvent(new Event('input', {bubbles: true}))"""
        self.driver.execute_script(script, self.one(f"#{name}"), value)

    def log(self):
        return [entry for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]


@pytest.fixture
def page(browser, server):
    page = Page(browser, server)
    yield page.open()
    assert page.log() == []


def best(translator, *texts, **options):
    return [row[0].text for row in translator.n_best(texts, tuple(options.items()))]


def test_typed_text_is_translated_line_by_line(page, translator):
    page.type(FIRST, "", SECOND)
    expected = best(translator, FIRST, SECOND)
    assert page.translations() == [expected[0], "", expected[1]]
    page.press(" And", " more.")
    changed = f"{SECOND} And more."
    assert page.translations() == [expected[0], "", *best(translator, changed)]
    found = translator.n_best([changed], ())[0]
    assert page.texts("#n_best button span") == [each.text for each in found]
    shown = [f"{each.score:.2f}".replace("-", "−") for each in found]
    assert page.texts("#n_best small") == shown


def test_markup_is_shown_as_text(page):
    page.type("<img src=x onerror=alert(1)> & <b>")
    page.translations()
    assert page.texts("#mirror .word")[0] == "<img"
    assert page.all("main img, main b") == []


def test_a_word_highlights_the_words_it_attends_to(page, translator, screenshots):
    page.type(FIRST, SECOND)
    (weights,) = translator.align([(SECOND, page.translations()[1])])
    page.hover(page.all("#target .word")[-1])
    expected = [weight if weight >= 0.04 else 0 for weight in weights[-1]]
    assert page.linked("mirror") == [0] * len(FIRST.split()) + expected
    page.driver.save_screenshot(str(screenshots / "demo.png"))

    page.hover(page.all("#mirror .word")[-1])
    column = [row[-1] if row[-1] >= 0.04 else 0 for row in weights]
    assert page.linked("target")[-len(column) :] == column
    assert not any(page.linked("target")[: -len(column)])
    page.hover(page.one("h1"))
    assert not any(page.linked("target") + page.linked("mirror"))


def test_words_with_a_small_probability_are_shaded(page, translator, screenshots):
    """A pointer or a tap on a word shows its probability; a model may give none."""
    from selenium.webdriver.support.select import Select

    page.type("Time flies like an arrow.", FIRST).translations()
    rows = translator.n_best(["Time flies like an arrow.", FIRST], ())
    expected = [p for row in rows for p in row[0].word_probabilities]
    words = page.all("#target .word")
    assert [word.get_attribute("title") for word in words] == [
        f"Probability {100 * p:.0f} %" for p in expected
    ]
    levels = [int(word.get_attribute("data-level")) for word in words]
    assert levels == [(p < 0.8) + (p < 0.5) + (p < 0.2) for p in expected]
    assert len(set(levels)) > 1
    page.set_size(360, 900)
    words[0].click()
    assert page.texts("#probability") == [
        f"– Probability {100 * expected[0]:.0f} %: {words[0].text}"
    ]
    page.driver.save_screenshot(str(screenshots / "demo_words_360.png"))
    assert page.one("#legend").is_displayed()
    Select(page.one("#models")).select_by_index(1)
    page.until(lambda: page.texts("#target p")[1] == FIRST[::-1])
    assert not page.one("#legend").is_displayed()
    assert not any(word.get_attribute("title") for word in page.all("#target .word"))


def test_another_model_can_be_chosen(page, translator):
    """It translates the text again, with its own samples, limits and controls."""
    from selenium.webdriver.support.select import Select

    choice = Select(page.one("#models"))
    assert [each.text for each in choice.options] == [
        "English to German (tatoeba-en-de)",
        "German to English (mirror)",
    ]
    assert page.texts("#limits") == [translator.limits]
    page.type(FIRST).translations()
    choice.select_by_index(1)
    page.until(lambda: page.texts("#target p") == [FIRST[::-1]])
    assert page.texts("#limits") == ["It reverses each line."]
    assert not page.one("#search").is_displayed()
    choice.select_by_index(0)
    assert page.translations() == best(translator, FIRST)
    assert page.one("#search").is_displayed()


def test_sliders_change_the_search(page, translator):
    page.type(FIRST)
    page.translations()
    page.move("beam_size", 1)
    assert page.translations() == best(translator, FIRST, beam_size=1)
    assert len(page.all("#n_best button")) == 1
    page.one("#defaults").click()
    assert page.translations() == best(translator, FIRST)
    default = str(translator.controls["beam_size"].default)
    assert page.one("#beam_size").get_attribute("value") == default


def test_inputs_beside_the_lines_are_folded_away_and_change_the_translations(
    page, translator, screenshots
):
    from selenium.webdriver import Keys
    from selenium.webdriver.support.select import Select

    page.type(FIRST, SECOND)
    before = page.translations()
    start = page.one("#input_prefix")
    assert not start.is_displayed()
    page.one("#inputs summary").send_keys(Keys.ENTER)
    start.send_keys("Sagen Sie")
    assert page.translations() == best(translator, FIRST, SECOND, prefix="Sagen Sie")
    assert all(text.startswith("Sagen Sie") for text in page.texts("#target p"))
    for width in (1100, 360):
        page.set_size(width, 800)
        page.set_size(width, page.driver.execute_script("return document.body.scrollHeight"))
        page.driver.save_screenshot(str(screenshots / f"demo_inputs_{width}.png"))
        assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width
    start.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE)
    assert page.translations() == before
    Select(page.one("#models")).select_by_index(1)  # a model without inputs
    assert not page.one("#inputs").is_displayed()


def test_an_alternative_replaces_the_translation(page):
    page.type(FIRST)
    page.translations()
    page.all("#n_best button")[1].click()
    assert page.translations() == page.texts("#n_best button span")[1:2]
    assert page.all("#n_best button")[1].get_attribute("aria-pressed") == "true"


def downloaded(page, folder, name):
    """The content of the translated document, after a click on its link."""
    page.until(lambda: page.one("#download").is_displayed())
    behavior = {"behavior": "allow", "downloadPath": str(folder)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behavior)
    page.one("#download").click()
    page.until((folder / name).is_file)
    return (folder / name).read_bytes()


def test_a_document_is_translated_and_can_be_downloaded(page, translator, tmp_path):
    lines = [f"{FIRST} {n}" if n % 7 else "" for n in range(70)]
    (tmp_path / "in.txt").write_text("\r\n".join(lines) + "\r\n", "utf-8")
    shown = page.one("#file").get_attribute("accept").split(",")
    assert {".docx", ".txt", ".md", ".html", ".srt", ".po", ".xliff", ".tmx", ".json"} <= {*shown}
    page.one("#file").send_keys(str(tmp_path / "in.txt"))
    content = downloaded(page, tmp_path / "downloads", "in.translated.txt").decode()
    assert page.texts("#file_state")[0].startswith("60 texts of in.txt are translated.")
    rows = translator.n_best_of_document([line for line in lines if line], ())
    translations = iter(row[0].text for row in rows)
    assert content.split("\r\n") == [*(line and next(translations) for line in lines), ""]


def test_a_document_can_be_dropped_on_the_page(page, screenshots, tmp_path):
    """While it is translated, the page tells the progress."""
    drop = """const data = new DataTransfer();
        data.items.add(new File([arguments[0]], "in.html"));
        for (const name of ["dragover", "drop"])
          document.dispatchEvent(new DragEvent(name, {dataTransfer: data, cancelable: true}))"""
    states = """window.states = [];
        new MutationObserver(() => states.push($("file_state").textContent))
          .observe($("file_state"), {childList: true})"""
    items = "".join(f"<li><b>{FIRST}</b> No. {n}</li>" for n in range(40))
    page.driver.execute_script(states)
    page.driver.execute_script(drop, f"<html lang=en><ul>{items}</ul></html>")
    content = downloaded(page, tmp_path, "in.translated.html").decode()
    assert (content.count("<li><b>"), content.count('<html lang="de">')) == (40, 1)
    *states, last = page.driver.execute_script("return states")
    expected = ["Reading in.html", "0 of 40 texts of in.html", "32 of 40 texts of in.html"]
    assert states == expected
    assert last.startswith("40 texts of in.html are translated.")
    assert not page.all("#documents.target")
    for width in (1100, 360):
        page.set_size(width, 900)
        page.set_size(width, page.driver.execute_script("return document.body.scrollHeight"))
        page.driver.save_screenshot(str(screenshots / f"demo_document_{width}.png"))
        assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_document_can_be_canceled(page, tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(f"{FIRST} {n}" for n in range(500)), "utf-8")
    page.one("#file").send_keys(str(tmp_path / "in.txt"))
    page.until(lambda: page.texts("#file_state")[0].endswith(" of 500 texts of in.txt"))
    page.one("#cancel").click()
    page.until(lambda: page.texts("#file_state") == ["Canceled."])
    assert not any(page.one(name).is_displayed() for name in ("#progress", "#cancel", "#download"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.txt", b"\xff\xfeo\0n\0e\0", "bad.txt is UTF-16; expected UTF-8"),
        ("bad.pdf", b"", "bad.pdf is no document: expected the ending .txt, .md"),
        ("bad.json", b"{", "bad.json cannot be translated: it is not JSON"),
        ("bad.txt", b"a\n" * 2**23 + b"a", "The file has 16,777,217 bytes; at most 16,777,216"),
    ],
)
def test_a_bad_file_has_a_clear_error(page, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    page.one("#file").send_keys(str(tmp_path / name))
    page.until(lambda: message in page.texts("#file_state")[0])
    assert not page.one("#download").is_displayed()
    assert all("a status of 400" in entry["message"] for entry in page.log())


def test_the_keyboard_reaches_everything(page, translator):
    """Type, go to the words with Tab, between them with arrows, on to sliders and the file."""
    from selenium.webdriver import Keys

    page.press(FIRST, Keys.ENTER, SECOND)
    words = " ".join(page.translations()).split()
    page.press(Keys.TAB)
    assert page.driver.switch_to.active_element.get_attribute("id") == "copy"
    page.press(Keys.TAB, Keys.ARROW_RIGHT)
    assert page.driver.switch_to.active_element.text == words[1]
    assert any(page.linked("mirror"))
    page.press(Keys.TAB, Keys.TAB, Keys.ENTER)
    line = page.translations().index(page.texts("#n_best button span")[1])
    assert page.texts("#n_best_title") == [f"Alternatives of line {line + 1}"]
    for _ in range(20):
        if page.driver.switch_to.active_element.get_attribute("id") == "length_penalty":
            break
        page.press(Keys.TAB)
    page.press(Keys.ARROW_RIGHT)
    assert page.translations() == best(translator, FIRST, SECOND, length_penalty=0.7)
    page.press(Keys.TAB, Keys.TAB)
    assert page.driver.switch_to.active_element.get_attribute("id") == "file"


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_nothing_is_wider_than_the_window_in_both_color_schemes(page, screenshots, width):
    page.set_size(width, 900)
    page.paste(f"{FIRST}\n{SECOND}")
    page.translations()
    page.set_size(width, page.driver.execute_script("return document.body.scrollHeight"))
    brightness = {}
    for scheme in ("light", "dark"):
        page.set_scheme(scheme)
        page.driver.save_screenshot(str(screenshots / f"demo_{width}_{scheme}.png"))
        color = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        brightness[scheme] = sum(page.driver.execute_script(color))
    assert brightness["dark"] < 200 < 600 < brightness["light"]
    page.paste("x" * 150)
    page.translations()
    assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_reload_keeps_the_text(page, translator):
    """After the translation, and before it."""
    for text in (FIRST, SECOND):
        page.type(text)
        if text == FIRST:
            page.translations()
        page.driver.refresh()
        page.until(lambda: page.driver.title != "Translate")
        typed = page.one("#source").get_attribute("value")
        assert page.translations() == best(translator, typed)
        assert typed.endswith(text)


def test_the_page_is_valid_html_before_and_after_its_script(page):
    page.type(FIRST)
    page.translations()
    for text in (PAGE.read_text("utf-8"), page.driver.page_source):
        HtmlChecker.check(text)


def test_the_empty_page_offers_samples_below_its_hint(page, translator):
    """On a narrow screen the hint has two lines."""
    page.set_size(320, 900)
    sample = page.all("#samples button")[0]
    assert sample.text == translator.samples[0]
    shown = page.one("#mirror")
    assert shown.text == page.one("#source").get_attribute("placeholder")
    assert round(shown.rect["y"] + shown.rect["height"]) <= round(sample.rect["y"])
    sample.click()
    assert page.translations() == best(translator, translator.samples[0])


def test_a_long_line_has_an_error_and_the_others_are_translated(page, translator):
    page.paste(f"{FIRST}\n{'a' * 2001}")
    page.until(lambda: page.texts("#target p") == [*best(translator, FIRST), ""])
    assert page.texts("#error") == ["Line 2 has 2001 characters; at most 2000 are translated."]
