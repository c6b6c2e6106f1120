"""The example page runs an export's file in Chromium, without a network; Python is the oracle."""

import functools
import http.server
import pathlib
import shutil
import subprocess
import threading

import numpy as np
import pytest

from tf_transformer.export import to_litert
from tf_transformer.inference.translator import Translator

PAGE = pathlib.Path(__file__).parents[2] / "examples" / "litert_page.html"
RUNTIME = "@litertjs/core@2.5.3"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the page and LiteRT's runtime, and its address on this machine."""
    if not shutil.which("npm"):
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(PAGE, folder)
    subprocess.run(["npm", "install", "--no-save", RUNTIME], cwd=folder, check=True)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://localhost:{server.server_port}/{PAGE.name}"
        server.shutdown()


@pytest.mark.network
@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_page_gives_the_ids_of_the_search(run, site, browser, tmp_path, beam_size):
    from selenium.webdriver.support.wait import WebDriverWait

    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert")
    folder, address = site
    translator = Translator.from_run(
        run, beam_size=beam_size, max_source_length=12, max_extra_length=9
    )
    to_litert.write(translator, tmp_path / "model", "float32")
    shutil.copy(tmp_path / "model" / "model.tflite", folder)
    ids = translator.codec.encode("source", "two hundred")
    best = translator.graph().whole_search(np.array([ids], np.int32))
    expected = np.trim_zeros(best.ids[0, 0].numpy(), "b").tolist()

    browser.get(address)
    wait = WebDriverWait(browser, 60)
    wait.until(lambda page: page.find_element("css selector", "button").is_enabled())
    browser.find_element("name", "ids").send_keys(" ".join(map(str, ids[:-1])))
    browser.find_element("css selector", "button").click()
    wait.until(lambda page: page.find_element("css selector", "output").text)
    shown, _, score = browser.find_element("css selector", "output").text.partition(" (score ")
    assert list(map(int, shown.split())) == expected
    assert abs(float(score.rstrip(")")) - float(best.scores[0, 0])) < 1e-3
