"""Hooks of the site's build (mkdocs.yml): links to the repository, docstrings.

A link from a page to a file outside of the site, like `../configs/demo.yaml`, works where the
repository is shown. On the site it becomes a link to the repository.
"""

import configparser
import contextlib
import logging
import os
import pathlib
import re
import textwrap
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

import griffe
from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = "tf_transformer"
BRANCH = "main"
# Keras calls these methods, and the docstring of the class describes them.
OF_KERAS = {
    *("build", "call", "compute_mask", "compute_output_shape", "compute_output_spec"),
    *("from_config", "get_config", "update_state", "reset_state", "result"),
}

log = logging.getLogger("mkdocs.hooks.site")  # with --strict, its warnings fail the build


class RepositoryLinks(Treeprocessor):
    """Makes links to files outside of the site links to the repository."""

    page = None  # the one that is being rendered

    def __init__(self, repository: str, docs: pathlib.Path):
        self.repository = repository.rstrip("/")
        self.docs = docs

    def run(self, root: Element) -> None:
        for element in root.iter():
            for attribute in ("href", "src"):
                if target := element.get(attribute):
                    element.set(attribute, self.on_site(target))

    def on_site(self, target: str) -> str:
        """The target as the site has it."""
        path, mark, anchor = target.partition("#")
        if not path or path.startswith("/") or ":" in path or self.page is None:
            return target
        folder = (self.docs / self.page.file.src_uri).parent
        file = pathlib.Path(os.path.normpath(folder / path))
        if file.is_relative_to(self.docs) and file.suffix != ".py":
            return target  # MkDocs checks it
        if not file.is_relative_to(ROOT) or not file.exists():
            log.warning("%s links to %s, which does not exist.", self.page.file.src_uri, target)
            return target
        kind = "tree" if file.is_dir() else "blob"
        relative = file.relative_to(ROOT).as_posix()
        return f"{self.repository}/{kind}/{BRANCH}/{relative}{mark}{anchor}"


class RepositoryLinksExtension(Extension):
    """Registers a `RepositoryLinks`."""

    def __init__(self, links: RepositoryLinks):
        super().__init__()
        self.links = links

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.treeprocessors.register(self.links, "repository_links", 1)  # before MkDocs' own, at 0


class Docstrings(griffe.Extension):
    """Makes the docstrings of this project those that mkdocstrings reads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrites the sections of a docstring; the comment of a field is its docstring."""
        if obj.docstring:
            obj.docstring.value = with_known_sections(obj.docstring.value)
        elif obj.is_attribute and obj.parent and obj.parent.is_class and obj.lineno:
            line = obj.lines_collection[obj.filepath][obj.lineno - 1]
            if comment := re.search(r"  # ([^#]+)$", line):
                obj.docstring = griffe.Docstring(comment[1], parent=obj)


def with_known_sections(docstring: str) -> str:
    r"""A docstring whose sections have the names and forms that griffe knows.

    Example:
        >>> with_known_sections("Adds.\n\nCall arguments:\n    x: int.")
        'Adds.\n\nArgs: Call arguments:\n    x: int.'
    """

    def known(section: re.Match[str]) -> str:
        name, body = section[1], section[2]
        if name == "Call arguments":
            return f"Args: Call arguments:\n{body}"
        if name == "Returns":  # its text has colons of its own
            return f"**Returns:** {textwrap.dedent(body)}"
        if ">>>" in body:
            return f"Examples: Example:\n{body}"
        return f"**Example:**\n\n```python\n{textwrap.dedent(body).strip()}\n```\n"

    sections = r"^(Call arguments|Returns|Example):\n((?:(?: .*)?(?:\n|\Z))+)"
    return re.sub(sections, known, docstring, flags=re.MULTILINE)


links: RepositoryLinks


def on_config(config: Any) -> None:
    """Takes the repository's address from setup.cfg, and extends Markdown with the links."""
    global links
    metadata = configparser.ConfigParser(interpolation=None)
    metadata.read(ROOT / "setup.cfg", encoding="utf-8")
    config.repo_url = metadata["metadata"]["url"]
    links = RepositoryLinks(config.repo_url, pathlib.Path(config.docs_dir))
    config.markdown_extensions.append(RepositoryLinksExtension(links))


def on_pre_build(config: Any) -> None:
    """Warns of names without a docstring, and of exported names that the reference lacks."""
    package = griffe.load(PACKAGE, search_paths=[str(ROOT)])
    for name in undocumented(package):
        log.warning("%s has no docstring.", name)
    pages = pathlib.Path(config.docs_dir, "reference", "api")
    for name in unlisted(package, [page.read_text("utf-8") for page in pages.glob("*.md")]):
        log.warning("%s is on no page of docs/reference/api.", name)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Remembers the page; the start page has no list of pages beside it."""
    links.page = page
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    return markdown


def undocumented(parent: griffe.Module | griffe.Class) -> Iterator[str]:
    """The public modules, classes, functions, methods and properties without a docstring.

    A method needs none if it replaces a documented method of a base class or is that of a protocol,
    and a property if `Attributes` of its class has it.
    """
    for name, member in parent.members.items():
        if name.startswith("_") or member.is_alias:  # an alias is an import
            continue
        if member.is_attribute and "property" not in member.labels:
            continue
        if not (member.has_docstring or (parent.is_class and _is_documented(parent, name))):
            yield member.path
        if member.is_module or member.is_class:
            yield from undocumented(member)


def _is_documented(cls: griffe.Class, name: str) -> bool:
    """Whether another place documents a method or a property."""
    if name in OF_KERAS:
        return True
    for documented in (cls, *cls.mro(), *_protocols(cls)):
        member = documented.members.get(name)
        text = documented.docstring.value if documented.has_docstring else ""
        if (member and member.has_docstring) or re.search(rf"^ +{name}: ", text, re.MULTILINE):
            return True
    return False


def _protocols(cls: griffe.Class) -> Iterator[griffe.Class]:
    """The protocols of the package that a class implements: it has all of their members."""
    for module in _modules(cls.package):
        for other in module.classes.values():
            if not other.is_alias and "Protocol" in map(str, other.bases):
                public = {name for name in other.members if not name.startswith("_")}
                if public <= cls.all_members.keys():
                    yield other


def unlisted(package: griffe.Module, pages: list[str]) -> Iterator[str]:
    """The classes and functions in a module's `__all__` that no `:::` line of a page has."""
    listed = set()
    for name in re.findall(rf"^::: {package.name}\.(\S+)$", "\n".join(pages), re.MULTILINE):
        with contextlib.suppress(KeyError):  # mkdocstrings reports it
            listed.add(_target(package, name).path)
    for module in _modules(package):
        for name in module.exports or () if module.is_init_module else ():
            # Constants and names of types need no entry.
            if not _target(module, str(name)).is_attribute and (
                _target(module, str(name)).path not in listed
            ):
                yield f"{module.path}.{name}"


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for child in module.modules.values():
        if not child.is_alias:
            yield from _modules(child)


def _target(module: griffe.Module, name: str) -> griffe.Object:
    """What a name means, through all imports."""
    member = module[name]
    return member.final_target if member.is_alias else member
