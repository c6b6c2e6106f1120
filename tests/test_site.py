"""The site: faults stop its strict build; it works from the file system, dark and narrow too."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("mkdocs", reason="needs the extra docs")

ROOT = pathlib.Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def build(*options, cwd=ROOT):
    """The process of a strict build, and what it printed."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", *map(str, options)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def small(tmp_path):
    """A repository of one page and one module, with the configuration of the site."""
    docs = tmp_path / "docs"
    (docs / "reference" / "api").mkdir(parents=True)
    (docs / "images").mkdir()
    (tmp_path / "configs").mkdir()
    (tmp_path / "tf_transformer").mkdir()
    for name in ("mkdocs.yml", "docs/site_hooks.py", "docs/site.css", "docs/images/favicon.svg"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "docs" / "theme", docs / "theme")
    (tmp_path / "small.yml").write_text(
        "INHERIT: mkdocs.yml\nnav: [index.md, reference/api/all.md]\n"
    )
    (tmp_path / "setup.cfg").write_text("[metadata]\nurl = https://code.example/owner/name\n")
    (tmp_path / "configs" / "demo.yaml").write_text("train: {}\n")
    (docs / "index.md").write_text("# Start\n\n[a](../configs/demo.yaml) [b](#start)\n")
    (docs / "reference" / "api" / "all.md").write_text("# All\n\n::: tf_transformer.listed\n")
    (tmp_path / "tf_transformer" / "__init__.py").write_text(
        '"""A package."""\n\n__all__ = ["listed"]\n\n\ndef listed():\n    """Does nothing."""\n'
    )
    return tmp_path


def test_a_link_to_another_file_leads_to_the_repository(small):
    process = build("-f", "small.yml", cwd=small)
    assert process.returncode == 0, process.stderr
    page = (small / "site" / "index.html").read_text("utf-8")
    assert 'href="https://code.example/owner/name/blob/main/configs/demo.yaml"' in page
    assert 'href="#start"' in page


FAULTS = [  # file, what is added to it, what the build says
    ("docs/index.md", "[a](../configs/other.yaml)", "links to ../configs/other.yaml, which"),
    ("docs/index.md", "[a](other.md)", "'other.md'"),
    ("docs/index.md", "[a](#other)", "'#other'"),
    ("docs/index.md", "[a](reference/api/all.md#other)", "all.md#other'"),
    ("docs/omitted.md", "# Omitted", 'not included in the "nav" configuration'),
    ("tf_transformer/__init__.py", "def f():\n    pass", "tf_transformer.f has no docstring"),
    (
        "tf_transformer/__init__.py",
        'class A:\n    """A."""\n\n    def f(self):\n        pass',
        "tf_transformer.A.f has no docstring",
    ),
    ("tf_transformer/m.py", "pass", "tf_transformer.m has no docstring"),
    (
        "tf_transformer/__init__.py",
        'def g():\n    """Does nothing."""\n\n\n__all__ += ["g"]',
        "tf_transformer.g is on no page",
    ),
]


# Ends a build at once.
UNKNOWN = ("docs/reference/api/all.md", "::: tf_transformer.unknown", "tf_transformer.unknown")


@pytest.mark.parametrize("faults", [FAULTS, [UNKNOWN]], ids=["warnings", "error"])
def test_faults_stop_the_build(small, faults):
    """Several in one build; with --strict, a warning of each alone stops it, too."""
    for file, more, _ in faults:
        with (small / file).open("a", encoding="utf-8") as lines:
            lines.write(f"\n\n{more}\n")
    process = build("-f", "small.yml", cwd=small)
    assert process.returncode
    reported = [line for line in process.stderr.splitlines() if line.startswith(("WARN", "ERROR"))]
    for _, _, message in faults:
        assert any(message in line for line in reported), message


def test_methods_of_keras_and_replaced_methods_need_no_docstring(small):
    with (small / "tf_transformer" / "__init__.py").open("a", encoding="utf-8") as lines:
        lines.write(
            '\n\nclass A:\n    """A."""\n\n    def f(self):\n        """Does nothing."""\n'
            '\n\nclass B(A):\n    """B."""\n\n    def f(self):\n        pass\n'
            "\n    def call(self, x):\n        pass\n\n    def _own(self):\n        pass\n"
        )
    process = build("-f", "small.yml", cwd=small)
    assert process.returncode == 0, process.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site: the one that TF_TRANSFORMER_SITE names, or a new one."""
    if named := os.environ.get("TF_TRANSFORMER_SITE"):
        return ROOT / named
    folder = tmp_path_factory.mktemp("site")
    process = build("--site-dir", folder)
    assert process.returncode == 0, process.stderr
    return folder


@pytest.fixture
def opened(site, browser):
    """Opens a page from the file system in a window of a size and a scheme."""

    def show(page="index.html", width=1280, scheme="light"):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get((site / page).as_uri())
        return browser

    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)  # clears it
    return show


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value


def pages(site):
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [name for name in names if name != "404.html"]


def requested(browser):
    """The addresses that pages asked for since the log was read last."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


def errors(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_the_start_page_has_a_picture_and_leads_to_the_shelves(opened, site):
    browser = opened()
    assert "tf_transformer" in browser.title
    script = "return [...document.querySelectorAll('article img')].map(x => x.naturalWidth)"
    assert min(browser.execute_script(script)) > 100
    script = "return [...document.querySelectorAll('article a')].map(x => x.href)"
    links = [link.partition("#")[0] for link in browser.execute_script(script)]
    inside = [link for link in links if link.startswith(site.as_uri())]
    assert {"start", "guides", "tasks", "paper", "reference", "results"} <= {
        link.removeprefix(site.as_uri()).split("/")[1] for link in inside
    }


def test_pages_fit_a_phone_and_ask_no_network(opened, site):
    for page in pages(site):
        browser = opened(page, width=360)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360, page
        assert errors(browser) == [], page
        others = [
            url for url in requested(browser) if not url.startswith(("file:", "data:", "blob:"))
        ]
        assert others == [], page


def test_search_works_without_a_server(opened):
    browser = opened()
    query = browser.find_element("css selector", "[data-md-component=search-query]")
    query.click()
    query.send_keys("metrics.jsonl")
    selector = ".md-search-result__link[href*='reference/run_folder.html']"
    until(lambda: browser.find_elements("css selector", selector))
    assert errors(browser) == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requested(browser))


@pytest.mark.parametrize(("scheme", "name"), [("light", "default"), ("dark", "slate")])
def test_colors_follow_the_system_until_a_click(opened, scheme, name):
    browser = opened(scheme=scheme)
    browser.execute_script("localStorage.clear()")
    browser.refresh()
    body = browser.find_element("css selector", "body")
    assert body.get_attribute("data-md-color-scheme") == name
    script = "return getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)"
    color = browser.execute_script(script)[:3]
    assert max(color) < 80 if scheme == "dark" else min(color) > 200
    browser.find_element("css selector", "[data-md-component=palette] label:not([hidden])").click()
    until(lambda: body.get_attribute("data-md-color-media") != "(prefers-color-scheme)")
    browser.execute_script("localStorage.clear()")
