"""The addresses in the package's metadata, made from `url` in setup.cfg, which has all the rest."""

import configparser
import pathlib
import re

from setuptools import setup

ROOT = pathlib.Path(__file__).parent


def with_addresses(page: str, url: str, tag: str) -> str:
    """A page whose links to files of the repository are addresses, for a package index.

    Args:
        page: Markdown, with pictures and links in HTML, too.
        url: the address of the repository.
        tag: the version whose files are linked.
    """
    local = r"(?![\w+.-]+:|#|/)"  # neither an address nor an anchor of the page

    def rewrite(text: str) -> str:
        pictures = rf'(<(?:img|source) [^>]*?src(?:set)?="|!\[[^]]*\]\(){local}'
        text = re.sub(pictures, rf"\1{url}/raw/{tag}/", text)
        return re.sub(rf'(<a [^>]*?href="|\]\(){local}', rf"\1{url}/blob/{tag}/", text)

    parts = re.split(r"(^```.*?^```)", page, flags=re.DOTALL | re.MULTILINE)  # code blocks stay
    return "".join(part if part.startswith("```") else rewrite(part) for part in parts)


def main() -> None:
    """Builds the package."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    url = config["metadata"]["url"]
    package = (ROOT / "tf_transformer" / "__init__.py").read_text("utf-8")
    version = re.findall(r'^__version__ = "(.+)"', package, re.MULTILINE)[0]
    setup(
        long_description=with_addresses(
            (ROOT / "README.md").read_text("utf-8"), url, f"v{version}"
        ),
        long_description_content_type="text/markdown",
        project_urls={
            "Source": url,
            "Documentation": f"{url}/tree/v{version}/docs",
            "Changes": f"{url}/blob/v{version}/CHANGELOG.md",
            "Issues": f"{url}/issues",
        },
    )


if __name__ == "__main__":
    main()
