"""The pages: their Python blocks run, their commands are accepted, all that they name exists."""

import ast
import functools
import json
import pathlib
import re
import shlex
from typing import get_args, get_type_hints

import keras
import pytest

from docs import differences, options
from tf_transformer.commands import command_line
from tf_transformer.commands import main as commands
from tf_transformer.config import ModelConfig, Position
from tf_transformer.registry import OPTIONS

ROOT = pathlib.Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("pretrained/*/README.md"),
        ROOT / "benchmarks" / "README.md",
        ROOT / "research" / "README.md",
        *ROOT.glob("research/docs/*.md"),
    )
}
MOST_LINES = {"README.md": 110, "ARCHITECTURE.md": 130, "CONTRIBUTING.md": 50}
SECTIONS = {  # of the paper, in the table beside the code
    *("3", "3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "5.1", "5.3", "5.4"),
    *("6.1", "6.3", "Table 3"),
}
SERVER = "localhost:8501"  # in the pages; the tests put a stand-in for TensorFlow Serving there
USERS = ["README.md", *(page for page in PAGES if page.startswith(("docs/start/", "docs/guides/")))]


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of each fenced block; the language may be empty."""
    return re.findall(r"^```(\w*)\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)


def inline(page: str) -> list[str]:
    """The code spans outside of fenced blocks."""
    text = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


def shell_lines(program: str) -> list[tuple[str, list[str]]]:
    """(page, words) of each command that begins with `program`, in blocks and in code spans."""
    found = []
    for page in PAGES:
        scripts = "".join(text for language, text in blocks(page) if not language)
        lines = scripts.replace("\\\n", " ").split("\n") + inline(page)
        lines = [line.partition("  # ")[0] for line in lines if line.startswith(f"{program} ")]
        found += [(page, shlex.split(line)) for line in lines]
    return found


def without_redirection(words: list[str]) -> list[str]:
    ends = [words.index(sign) for sign in ("<", ">", "|", "&&") if sign in words]
    return words[: min(ends, default=len(words))]


PYTHON = [
    pytest.param(text, id=f"{page}-{number}", marks=[] if ".fit(" in text else pytest.mark.slow)
    for page in PAGES
    for number, text in enumerate(text for language, text in blocks(page) if language == "python")
]


@pytest.fixture(scope="module")
def server(readers_folder):
    """The address of a server with the exported model."""
    from stand_in_server import StandIn

    with StandIn(str(readers_folder / "served" / "mine" / "1"), "translator") as stand_in:
        yield stand_in.rest


@pytest.mark.parametrize("source", PYTHON)
def test_python_blocks_run(source, readers_folder, request, monkeypatch):
    """Each by itself, in the order of a reader who pastes only this one."""
    monkeypatch.chdir(readers_folder)
    if SERVER in source:
        source = source.replace(SERVER, request.getfixturevalue("server"))
    try:
        exec(compile(source, "block", "exec"), {"__name__": "block"})
    finally:
        keras.config.set_dtype_policy("float32")


def test_there_are_python_blocks():
    assert len(PYTHON) > 6


@pytest.mark.parametrize(
    ("page", "words"),
    [*shell_lines("python"), *shell_lines("tf-transformer")],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[1:3]),
)
def test_commands_are_accepted(page, words, monkeypatch):
    monkeypatch.chdir(ROOT)  # for --config
    program, *given = without_redirection(words)
    if program == "python":
        program, *given = given
    if program == "-m":
        program, *given = given
    name = given[0] if program == "tf-transformer" else program.removesuffix(".py")
    if name in commands.COMMANDS:
        given = given[program == "tf-transformer" :]
        if given:  # else the page only names the command
            main = commands.command(name)
            command_line.read_options(main, [word for word in given if word != "--help"])
        return
    source = source_of(program)
    for option in re.findall(r"--(?!help)(\w+)", " ".join(given)):
        assert re.search(rf"\b{option}\b", source), f"{page}: {program} has no option --{option}"


def source_of(program: str) -> str:
    """The text of a script, or of a module and those beside it."""
    if program.endswith(".pyz"):  # the program that an export contains
        program = "tf_transformer.export.run_in_litert"
    if program.endswith(".py"):
        script = ROOT / program
        wrapped = ROOT / "tf_transformer" / program  # a script may only start a module
        return "".join(path.read_text("utf-8") for path in (script, wrapped) if path.is_file())
    path = ROOT / pathlib.PurePath(*program.split("."))
    files = list(path.glob("*.py")) if path.is_dir() else list(path.parent.glob("*.py"))
    assert path.is_dir() or path.with_suffix(".py").is_file(), f"there is no module {program}"
    return "".join(file.read_text("utf-8") for file in files)


@functools.cache
def known_options() -> set[str]:
    """All options of the commands, as a user types them."""
    known = set()
    for name in commands.COMMANDS:
        main = commands.command(name)
        for task in OPTIONS:
            for action in command_line.parser_of(main, task=task)._actions:
                known |= set(action.option_strings)
    return known


@functools.cache
def serving_options() -> set[str]:
    """The options that the serving kit takes, or gives to a server."""
    folders = [ROOT / "export", ROOT / "tf_transformer" / "export"]
    files = [path for folder in folders for path in folder.rglob("*.*") if path.suffix != ".pyc"]
    return {option for file in files for option in re.findall(r"--\w+", file.read_text("utf-8"))}


@pytest.mark.parametrize("page", USERS)
def test_options_in_the_text_exist(page):
    spans = [span for span in inline(page) if span.startswith("--")]
    named = {option for span in spans for option in re.findall(r"(?<!\S)--[a-z][\w.]*", span)}
    assert named <= known_options() | serving_options()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", re.sub(r"`[^`\n]+`", "", PAGES[page])):
        if "://" in target:
            continue
        file, _, anchor = target.partition(' "')[0].partition("#")  # without the link's title
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text("utf-8")), target


def anchors(text: str) -> set[str]:
    """The addresses of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page):
    folders = "tf_transformer|configs|tests|export|examples|docs|results|benchmarks|research"
    for span in inline(page):
        if match := re.fullmatch(rf"((?:{folders})/[\w./-]*)(?:::\w+)?", span):
            assert (ROOT / match[1]).exists(), span


def named_tests(page: str) -> list[tuple[str, str]]:
    """(file, test) of each test that a page names, in code or as the title of a link."""
    found = [
        *re.findall(r"`((?:research/)?tests/[\w/]+\.py)::(\w+)`", PAGES[page]),
        *re.findall(r'\]\(([^) ]+/test_\w+\.py) "(\w+)"\)', PAGES[page]),
    ]
    folder = (ROOT / page).parent
    return [(str((folder if file[0] == "." else ROOT) / file), test) for file, test in found]


@pytest.mark.parametrize("page", PAGES)
def test_named_tests_exist(page):
    for file, test in named_tests(page):
        assert f"def {test}(" in pathlib.Path(file).read_text("utf-8"), f"{file}::{test}"


def test_every_invariant_has_a_test():
    page = "docs/contributing/invariants.md"
    invariants = [line for line in PAGES[page].splitlines() if line.startswith("- ")]
    assert len(invariants) == len(named_tests(page)) > 80


def test_each_section_of_the_paper_has_code_and_an_oracle():
    page = "docs/paper/code.md"
    rows = [line.split(" | ") for line in PAGES[page].splitlines() if "/tests/" in line]
    assert {section.removeprefix("| ") for section, *_ in rows} == SECTIONS
    for _section, _part, code, oracle in rows:
        assert "](../../tf_transformer/" in code
        assert re.search(r'\]\(../../tests/\S+ "test_\w+"\)', oracle)


def test_the_table_of_positions_is_complete():
    rows = re.findall(r"^\| `(\w+)` \|", PAGES["docs/paper/variants.md"], re.MULTILINE)
    assert set(get_args(Position)) <= set(rows)


@pytest.mark.parametrize("field", ["architecture", "attention", "activation", "normalization"])
def test_the_pages_of_the_paper_name_each_value_of_an_option(field):
    words = {
        word
        for page in PAGES
        if page.startswith("docs/paper/")
        for span in inline(page)
        for word in span.split()
    }
    values = get_args(get_type_hints(ModelConfig)[field])
    assert set(values) - {getattr(ModelConfig, field)} <= words


@pytest.mark.parametrize(("page", "most"), MOST_LINES.items())
def test_first_pages_are_short(page, most):
    assert PAGES[page].count("\n") <= most


def test_the_reference_of_options_is_up_to_date():
    assert options.PAGE.read_text("utf-8") == options.page(), "run python -m docs.options"


def test_each_command_in_the_reference_of_options_exists():
    heading = r"^## ((?:python|tf-transformer) .+)$"
    programs = re.findall(heading, PAGES["docs/reference/options.md"], re.MULTILINE)
    assert len(programs) == len(commands.COMMANDS)
    for program in programs:
        *starter, name = program.split()
        if starter == ["tf-transformer"]:
            assert name in commands.COMMANDS
        else:
            path = ROOT / name if starter == ["python"] else ROOT / name / "__main__.py"
            assert path.is_file(), program


def test_pages_agree_about_the_minutes_of_a_command():
    measured = "docs/results/"  # what one machine took
    texts = [text for page, text in PAGES.items() if not page.startswith(measured)]
    texts.append((ROOT / "Makefile").read_text("utf-8"))
    paragraphs = [paragraph for text in texts for paragraph in text.split("\n\n")]
    # The minutes belong to the command that the paragraph names last before them.
    found = re.compile(r"make ([\w-]+)(?:(?!make ).)*?about (\S+) minutes", re.DOTALL)
    stated = {match.groups() for paragraph in paragraphs for match in found.finditer(paragraph)}
    assert stated == {("demo", "4"), ("test", "20")}


def test_the_list_of_differences_from_the_paper_is_up_to_date():
    assert differences.PAGE.read_text("utf-8") == differences.page(), (
        "run python -m docs.differences"
    )


def test_differences_from_papers_are_found_with_their_places():
    code = """\
# Differs from the paper: one | two,
# three.
LIMIT: int = 3


class Layer:
    # Differs from Shaw et al. 2018: four.

    def call(self):
        # Differs from the paper: five.
        return 1
"""
    assert list(differences.differences_in(code, "a.py")) == [
        ("a.py", "LIMIT", "the paper", "One | two, three."),
        ("a.py", "Layer", "Shaw et al. 2018", "Four."),
        ("a.py", "Layer.call", "the paper", "Five."),
    ]


def test_a_common_option_that_does_not_exist_is_an_error(monkeypatch):
    monkeypatch.setitem(options.COMMON, "translate", {"run_dir", "beam_width"})
    with pytest.raises(KeyError, match="beam_width"):
        options.page()


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = {words[1] for _page, words in shell_lines("make")}
    assert {"demo", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_names_both_commands_that_set_up():
    for command in ("make demo", "make test"):
        assert command in inline("README.md")


def test_extras_of_pip_exist():
    import configparser

    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    named = {
        extra
        for _page, words in shell_lines("pip")
        for word in words
        for extra in re.findall(r"\[(\w+)\]", word)
    }
    assert named
    assert named <= set(setup["options.extras_require"])


def test_the_server_is_started_with_files_that_exist():
    starts = shell_lines("tensorflow_model_server")
    assert len(starts) >= 2
    for _page, words in starts:
        given = dict(word.removeprefix("--").split("=") for word in words[1:])
        if "batching_parameters_file" in given:
            file = given["batching_parameters_file"].removeprefix("$PWD/")
            assert (ROOT / file).is_file()
        assert given["model_base_path"] == "$PWD/served/" + given["model_name"]


REQUESTS = [words[words.index("-d") + 1] for _, words in shell_lines("curl") if "-d" in words]


@pytest.mark.parametrize("body", REQUESTS)
def test_requests_of_curl_are_json_with_instances(body):
    request = json.loads(body)
    assert request.keys() <= {"signature_name", "instances"}
    assert request["instances"]


@pytest.mark.parametrize("page", PAGES)
def test_json_blocks_are_json(page):
    for language, text in blocks(page):
        if language == "json":
            json.loads(text)


def answers() -> list[tuple[str, dict]]:
    """(page, answer) of each recorded answer of an exported translator, in pages and notebooks."""
    texts = PAGES | {str(path): path.read_text("utf-8") for path in ROOT.glob("notebooks/*.ipynb")}
    return [
        (page, json.loads(answer))
        for page, text in texts.items()
        for answer in re.findall(r'\{"translation": "[^{}]*\}', text.replace(r"\"", '"'))
    ]


def test_recorded_answers_have_the_outputs_of_the_signature():
    page = PAGES["docs/reference/signatures.md"]
    row = re.search(r"^\| `serving_default` \|.*\|(.*)\|$", page, re.MULTILINE)
    assert row
    outputs = set(re.findall(r"`(\w+)`", row[1]))
    assert len(answers()) >= 7
    for page, answer in answers():
        # A run with the words of its training also has `unseen_words`.
        assert answer.keys() == outputs | {"unseen_words"}, page


def test_table_of_serving_files_is_complete():
    page = PAGES["docs/guides/serving.md"].partition("## Readiness")[0]
    named = set(re.findall(r"`(\w+\.\w+)`", page))
    files = {path.name for path in (ROOT / "export" / "serving").iterdir() if path.is_file()}
    assert files == named


ANY = "…"  # stands for a value in a message


def messages() -> list[str]:
    """The texts in the code that a user may see, with `ANY` for each value; no docstrings."""
    folders = [ROOT / "tf_transformer", ROOT / "export"]
    trees = [ast.parse(p.read_text("utf-8")) for folder in folders for p in folder.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and n not in docstrings]
    texts += ["".join(map(template, n.values)) for n in nodes if isinstance(n, ast.JoinedStr)]
    return [(ROOT / "Makefile").read_text("utf-8"), *(t for t in texts if isinstance(t, str))]


def template(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else ANY


def quoted_messages() -> list[str]:
    """The headings of the page on troubleshooting that are a message of this project."""
    page = PAGES["docs/guides/troubleshooting.md"]
    return re.findall(r"^### `(.+)`$", page, re.MULTILINE)


def test_there_are_quoted_messages():
    assert len(quoted_messages()) > 30


def test_quoted_messages_occur_in_the_code():
    known = messages()
    for message in quoted_messages():
        pattern = re.compile(".*".join(map(re.escape, message.split(ANY))))
        assert any(map(pattern.search, known)), message
