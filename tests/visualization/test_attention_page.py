"""The page of attention, in a browser: heads, lines, heat map, numbers, keyboard, widths."""

import numpy as np
import pytest
from html_checker import HtmlChecker

from tf_transformer.inference.attention_record import AttentionMap, AttentionRecord, Tokens
from tf_transformer.visualization.attention_page import attention_page

selenium = pytest.importorskip("selenium", reason="needs selenium")
from selenium.webdriver import ActionChains, Keys  # noqa: E402

pytestmark = pytest.mark.browser

ODD = "</script><script>alert('a')</script> & <b>\" <!-- \u2028"


def some_map(kind, queries, keys, layers=2, heads=3):
    """Weights that are multiples of 1/40, so that none is close to the least weight of a line."""
    draw, count = np.random.default_rng(len(kind)), len(keys.pieces)
    p = draw.dirichlet(np.full(count, 0.5), (layers, heads, len(queries.pieces)))
    return AttentionMap(kind, queries, keys, draw.multinomial(40, p) / 40)


SOURCE = Tokens(["▁twen", "ty", "▁one", "</s>"], ["twenty", "one", "</s>"], [0, 0, 1, 2])
TARGET = Tokens(["▁ein", "und", "</s>"], ["einund", "</s>"], [0, 0, 1])
READ = Tokens(["<s>", "▁ein", "und"], ["<s>", "einund"], [0, 1, 1])
LONG = Tokens([f"▁{i}{'long' * 9}" for i in range(40)], ["long" * 9] * 40, list(range(40)))


def record(text, output, source, read):
    """A record of a translation model."""
    maps = [
        some_map("encoder", source, source),
        some_map("decoder", TARGET, read),
        some_map("cross", TARGET, source),
    ]
    return AttentionRecord(text, output, maps)


RECORDS = [record(ODD, "einund", SOURCE, READ), record("long", "", LONG, READ)]
MANY_HEADS = [AttentionRecord("long", "", [some_map("encoder", LONG, LONG, heads=16)])]


@pytest.fixture
def page(browser, tmp_path):
    """Opens a page of records; at the end there must be nothing in the console."""

    def opened(records=RECORDS, width=1280):
        (tmp_path / "page.html").write_text(attention_page(records), "utf-8")
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        browser.get((tmp_path / "page.html").as_uri())
        return browser

    yield opened
    assert browser.get_log("browser") == []


def find(page, selector):
    return page.find_elements("css selector", selector)


def picture(page, kind, layer, head):
    row = f"#overview table[data-kind={kind}] tbody tr:nth-child({layer + 1})"
    return find(page, f"{row} button")[head]


def texts(page, selector):
    return [element.text for element in find(page, selector)]


def numbers(page, selector):
    """The numbers of two decimals that elements show."""
    found = texts(page, selector)
    assert all(len(text) == 4 for text in found)
    return list(map(float, found))


def rounded(weights):
    return pytest.approx(weights, abs=0.0051)


def drawn(page):
    """The strengths of all lines."""
    return sorted(float(line.get_attribute("stroke-opacity")) for line in find(page, "line"))


def expected_lines(*matrices):
    return pytest.approx(sorted(w for w in np.ravel(matrices) if w >= 0.01), abs=0.006)


def test_all_heads_are_shown_and_the_mean_of_the_last_layer_is_chosen(page):
    page = page()
    captions = texts(page, "caption")
    assert captions == ["encoder", "decoder", "decoder to encoder"]
    assert len(find(page, "#overview button")) == 3 * 2 * (3 + 1)
    assert find(page, "[aria-pressed=true]") == [picture(page, "cross", 1, 3)]
    assert drawn(page) == expected_lines(RECORDS[0].maps[2].by_words()[1].mean(axis=0))
    assert page.execute_script("return document.getElementById('text').textContent") == ODD


def test_a_click_on_a_picture_shows_its_head(page):
    page = page()
    picture(page, "encoder", 0, 1).click()
    weights = RECORDS[0].maps[0].by_words()[0, 1]
    assert texts(page, "#map_title") == ["Heat map: encoder, layer 1, head 2"]
    assert drawn(page) == expected_lines(weights)
    assert colours(page) == pytest.approx(weights, abs=0.02)


def colours(page):
    """The strength of each cell of the heat map."""
    return page.execute_script(
        """
        const canvas = document.getElementById("map"), {left, top} = canvas.dataset;
        const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const place = (i, j) => Math.floor(Number(top) + (i + .5) * CELL) * canvas.width
            + Math.floor(Number(left) + (j + .5) * CELL);
        const colour = (i, j) => data[4 * place(i, j) + 3] / 255;
        return shown.queries.map((_, i) => shown.keys.map((_, j) => colour(i, j)));
        """
    )


def test_heads_are_toggled(page):
    page = page()
    layer = RECORDS[0].maps[2].by_words()[1]
    mean, boxes = find(page, "#heads input")[-1], find(page, "#heads input")[:-1]
    mean.click()
    assert drawn(page) == expected_lines(*layer)
    boxes[1].click()
    assert drawn(page) == expected_lines(layer[0], layer[2])
    assert texts(page, "#lines_title") == ["Lines: decoder to encoder, layer 2, heads 1, 3"]
    assert colours(page) == pytest.approx(layer[[0, 2]].mean(axis=0), abs=0.02)
    for box in (boxes[0], boxes[2]):
        box.click()
    assert drawn(page) == []
    boxes[1].click()
    assert find(page, "[aria-pressed=true]") == [picture(page, "cross", 1, 1)]


def test_pieces_are_shown_in_place_of_words(page):
    page = page()
    assert texts(page, "#keys li span") == SOURCE.words
    find(page, "input[value=pieces]")[0].click()
    assert texts(page, "#keys li span") == SOURCE.pieces
    assert texts(page, "#queries li span") == TARGET.pieces
    assert drawn(page) == expected_lines(RECORDS[0].maps[2].weights[1].mean(axis=0))


def test_pointing_to_a_token_shows_the_numbers_of_the_other_column(page):
    page = page()
    weights = RECORDS[0].maps[2].by_words()[1].mean(axis=0)
    ActionChains(page).move_to_element(find(page, "#queries li")[1]).perform()
    assert numbers(page, "#keys output") == rounded(weights[1])
    assert texts(page, "#queries output") == ["", ""]
    assert drawn(page) == expected_lines(weights[1])
    ActionChains(page).move_to_element(find(page, "#keys li")[2]).perform()
    assert numbers(page, "#queries output") == rounded(weights[:, 2])
    assert drawn(page) == expected_lines(weights[:, 2])


def test_pointing_to_a_cell_shows_its_number(page):
    page = page()
    weights = RECORDS[0].maps[2].by_words()[1].mean(axis=0)
    heat_map = find(page, "#map")[0]
    left, top = (float(heat_map.get_attribute(f"data-{side}")) for side in ("left", "top"))
    size = heat_map.size
    x, y = (left + 1.5 * 22 - size["width"] / 2, top + 0.5 * 22 - size["height"] / 2)
    ActionChains(page).move_to_element_with_offset(heat_map, round(x), round(y)).perform()
    assert texts(page, "#numbers") == [f"einund → one: {weights[0, 1]:.3f}"]


def test_the_keyboard_is_enough(page):
    """Tab reaches each part, and the arrow keys move inside of it."""
    page = page()
    weights = RECORDS[0].maps[0].by_words()
    keys = ActionChains(page)
    page.execute_script("arguments[0].focus()", picture(page, "encoder", 0, 0))
    keys.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ENTER).perform()
    assert texts(page, "#map_title") == ["Heat map: encoder, layer 2, head 2"]
    reached = []
    for _ in range(12):
        ActionChains(page).send_keys(Keys.TAB).perform()
        focused = page.switch_to.active_element
        reached.append(focused.get_attribute("id") or focused.tag_name)
        if reached[-1] == "map":
            break
    assert reached == [*["button"] * 2, *["input"] * 4, "li", "li", "map"]
    ActionChains(page).send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT).perform()
    assert texts(page, "#numbers") == [f"one → one: {weights[1, 1, 1, 1]:.3f}"]
    page.execute_script("arguments[0].focus()", find(page, "#queries li")[0])
    ActionChains(page).send_keys(Keys.ARROW_DOWN).perform()
    assert numbers(page, "#keys output") == rounded(weights[1, 1, 1])


def test_the_choice_of_heads_stays_for_another_sentence(page):
    page = page()
    assert texts(page, "#sentence option")[1] == "2: long"
    picture(page, "cross", 0, 2).click()
    find(page, "#sentence option")[1].click()
    assert texts(page, "#keys li span") == LONG.words
    assert drawn(page) == expected_lines(RECORDS[1].maps[2].by_words()[0, 2])
    assert find(page, "[aria-pressed=true]") == [picture(page, "cross", 0, 2)]


def test_a_model_may_have_an_encoder_only(page):
    page = page(MANY_HEADS)
    assert texts(page, "caption") == ["encoder"]
    assert texts(page, "#lines_title") == ["Lines: encoder, layer 2, all heads"]
    assert len(find(page, "#queries li")) == 40


def test_one_sentence_has_no_list_of_sentences(page):
    assert not find(page(RECORDS[:1]), "#sentences")[0].is_displayed()


@pytest.mark.parametrize("width", [320, 768, 1280])
@pytest.mark.parametrize("records", [RECORDS[:1], MANY_HEADS], ids=["short", "long"])
def test_the_page_is_never_wider_than_the_window(page, records, width):
    widths = page(records, width).execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1] <= width


def test_colours_follow_the_system(page):
    page = page()
    backgrounds = set()
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        style = "return getComputedStyle(document.body)"
        text, background = (
            brightness(page.execute_script(f"{style}.{name}")) for name in ("color", "background")
        )
        assert abs(text - background) > 150
        backgrounds.add(background > 128)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert backgrounds == {True, False}


def brightness(colour):
    """The mean of red, green and blue of rgb(...)."""
    numbers = colour.partition("(")[2].partition(")")[0].split(",")
    return sum(map(int, numbers[:3])) / 3


def test_the_page_is_valid_and_loads_nothing(page):
    """As written, and as the browser has it after the script has run."""
    for text in (attention_page(RECORDS), page().page_source):
        HtmlChecker.check(text)
