"""What a release needs: versions that agree, a frozen changelog, and links for a package index."""

import importlib.util
import pathlib
import re

import pytest
import yaml

import tf_transformer

ROOT = pathlib.Path(__file__).parents[1]
URL = "https://example.org/x"


@pytest.fixture(scope="module")
def setup():
    """The module setup.py."""
    spec = importlib.util.spec_from_file_location("setup_of_tf_transformer", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_versions_agree():
    """The newest version of the changelog is that of the package or the next one."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert citation["version"] == tf_transformer.__version__
    assert tf_transformer.__version__ in sections[:2]


def test_the_changelog_has_no_generated_values():
    assert "<!--" not in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("[a](docs/a.md#b), [c](#c)", f"[a]({URL}/blob/v1/docs/a.md#b), [c](#c)"),
        ("[a](https://a.b/c.md)", "[a](https://a.b/c.md)"),
        ("![a](docs/a.png)", f"![a]({URL}/raw/v1/docs/a.png)"),
        (
            '[<img width="9" src="docs/a.png" alt="a">](docs/a.md)',
            f'[<img width="9" src="{URL}/raw/v1/docs/a.png" alt="a">]({URL}/blob/v1/docs/a.md)',
        ),
        (
            "[![a](docs/a.png)](docs/a.md)",
            f"[![a]({URL}/raw/v1/docs/a.png)]({URL}/blob/v1/docs/a.md)",
        ),
        (
            '<a href="docs/a.md"><source srcset="docs/a.png"></a>',
            f'<a href="{URL}/blob/v1/docs/a.md"><source srcset="{URL}/raw/v1/docs/a.png"></a>',
        ),
        ("```python\nlayers[-1](x)\n```\n", "```python\nlayers[-1](x)\n```\n"),
    ],
)
def test_links_of_the_readme_become_addresses(setup, page, expected):
    assert setup.with_addresses(page, URL, "v1") == expected


def test_no_link_of_the_readme_is_local(setup):
    page = setup.with_addresses((ROOT / "README.md").read_text("utf-8"), URL, "v1")
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r'\]\(([^)]+)\)|(?:src|srcset|href)="([^"]+)"', text)
    assert targets
    assert [t for pair in targets for t in pair if t and not t.startswith(("https://", "#"))] == []
