"""How well the rules of `tf-transformer inspect` find faults that a program puts into clean text.

    python -m research.corpus_faults --corpora a.en:a.de,b.en:b.de --foreign c.en:c.fr

The first table has a row for each fault. *Recall* is the share of the faults that the rule finds.
*Precision* is the share of faults among the pairs that it finds, if half of the pairs have the
fault. *Cleaned* is the share that `data.clean recommended` leaves out. The second table has the
share of pairs that each rule finds in the text as it is; `--examples` prints some of them. The
detection of languages needs the extra `inspect`.
"""

import html
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from html.entities import codepoint2name
from typing import Any

from sacremoses import MosesTokenizer

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.data.rules import RULES, Test

Pair = tuple[str, str]
Fault = Callable[[Pair, Pair, random.Random], Pair]
"""fault(pair, other, draw): the pair with a fault, or as it is if it cannot have it.

`other` is another pair.
"""

NO_RULE = "none"
COPIES = "duplicate"
OTHER_RULES = RULES.keys() - {COPIES}
FOREIGN = "the target is in another language"
SIDES = ("en", "de")
_WORD = re.compile(r"[^\W\d_]{4,}")
_NUMBER = re.compile(r"(?<![\w.,])(?:1[3-9]|[2-9]\d|\d{3,})(?![\w.,]*\d)")
_MOSES = {language: MosesTokenizer(language) for language in SIDES}


def main(
    corpora: str, foreign: str, pairs: int = 3000, examples: int = 0, output: str = ""
) -> None:
    """Prints both tables.

    Args:
        corpora: for each corpus, a file of English sources, a colon, and a file of German targets.
        foreign: such a pair of files whose targets are in another language.
        pairs: the most pairs of a corpus, drawn at random.
        examples: number of pairs to print that a rule finds in the text as it is.
        output: result file to write, like research/results/corpus_faults.json.
    """
    rows: list[dict[str, Any]] = []
    clean_rows: list[dict[str, Any]] = []
    strangers = drawn(foreign, pairs)
    for paths in corpora.split(","):
        name, clean = name_of(paths.split(":")[0]), drawn(paths, pairs)
        of_corpus, found = fault_rows(name, clean, strangers)
        rows += of_corpus
        shares = {rule: round(sum(some) / len(clean), 4) for rule, some in found.items()}
        clean_rows.append({"corpus": name, "pairs": len(clean)} | shares)
        for rule, some in found.items():
            alarms = [pair for pair, is_found in zip(clean, some, strict=True) if is_found]
            for pair in alarms[:examples]:
                print(name, rule, *pair, sep=" | ")
    print(of_rows(rows, left=3))
    print(of_rows(clean_rows, left=1))
    results.save(output, rows, ("py3langid", "sacremoses"), summary={"clean": clean_rows})


def name_of(path: str) -> str:
    """The name of a corpus: that of its file, or of its folder for a file train.en or test.en."""
    *_, folder, file = path.split("/")
    stem = file.rpartition(".")[0]
    return folder if stem in ("train", "test", "valid", "all") else stem


def drawn(paths: str, count: int) -> list[Pair]:
    """Pairs of two files, drawn at random. Both sides have words."""
    source, target = (first_lines(path, 10**9) for path in paths.split(":"))
    pairs = [pair for pair in zip(source, target, strict=True) if all(map(str.split, pair))]
    return random.Random(1).sample(pairs, min(count, len(pairs)))


def fault_rows(
    corpus: str, clean: Sequence[Pair], foreign: Sequence[Pair]
) -> tuple[list[dict[str, Any]], dict[str, list[bool]]]:
    """A row for each fault; and for each rule, whether it finds each pair as it is.

    Precision counts each pair once with the fault and once without it.
    """
    draw, rows = random.Random(1), []
    others = draw.sample(clean, len(clean))
    tests: dict[str, Test] = {name: rule.start(SIDES) for name, rule in RULES.items()}
    alarms = {name: [test(*pair) for pair in clean] for name, test in tests.items()}
    for fault, (rule, put_in) in FAULTS.items():
        pool = foreign if fault == FOREIGN else others
        changed = [put_in(*pairs, draw) for pairs in zip(clean, pool, strict=False)]
        kept = [n for n, new in enumerate(changed) if new != clean[n] or rule == COPIES]
        row: dict[str, Any] = {"corpus": corpus, "fault": fault, "rule": rule, "pairs": len(kept)}
        if kept and rule in tests:
            found = sum(tests[rule](*changed[n]) for n in kept)
            false = sum(alarms[rule][n] for n in kept)
            row["recall"] = round(found / len(kept), 3)
            row["precision"] = round(found / max(1, found + false), 3)
        if kept:
            cleaning = [tests[name] for name in _cleaning(rule)]
            cleaned = sum(any(test(*changed[n]) for test in cleaning) for n in kept)
            row["cleaned"] = round(cleaned / len(kept), 3)
        rows.append(row)
    return rows, alarms


def _cleaning(rule: str) -> list[str]:
    """The recommended rules. A fault of another kind does not count as a copy of the clean pair."""
    return [name for name, x in RULES.items() if x.recommended and name in (rule, *OTHER_RULES)]


def on_target(change: Callable[[str], str]) -> Fault:
    """A fault of the target alone."""
    return lambda pair, other, draw: (pair[0], change(pair[1]))


def on_both(change: Callable[[str], str]) -> Fault:
    """A fault of both sides."""
    return lambda pair, other, draw: (change(pair[0]), change(pair[1]))


def as_it_is(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """A copy of the pair, which is an earlier pair, too."""
    return pair


def untranslated(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """The source in place of the target."""
    return pair[0], pair[0]


def nearly_untranslated(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """The source in place of the target, in lower case and without its last punctuation."""
    return pair[0], pair[0].lower().rstrip(".!? ")


def swapped(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """The target as source."""
    return pair[1], pair[0]


def of_another_pair(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """The target of another pair."""
    return pair[0], other[1]


def with_another_target(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """The targets of three pairs in a line."""
    return pair[0], f"{pair[1]} {other[1]} {other[0]}"


def cut_to(share: int) -> Callable[[str], str]:
    """Keeps the first words of a text, one of so many."""
    return lambda text: " ".join(text.split()[: max(1, len(text.split()) // share)])


def misread(written: str, read: str) -> Callable[[str], str]:
    """Writes a text in an encoding and reads it in another; texts that cannot be written stay."""

    def change(text: str) -> str:
        try:
            content = text.encode(written)
        except UnicodeEncodeError:
            return text
        return content.decode(read, "replace")

    return change


def with_entities(text: str) -> str:
    """Letters outside of ASCII as entities, such as &uuml;."""
    names = {ord(x): f"&{codepoint2name[ord(x)]};" for x in text if ord(x) in codepoint2name}
    return text.translate({code: name for code, name in names.items() if code > 127})


def with_numeric_entities(text: str) -> str:
    """Letters outside of ASCII as entities with numbers, such as &#252;."""
    return text.encode("ascii", "xmlcharrefreplace").decode()


def tokenized_by_moses(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """Both sides as Moses writes them, if that has a mark."""
    sides = [
        _MOSES[language].tokenize(text, aggressive_dash_splits=True, return_str=True)
        for text, language in zip(pair, SIDES, strict=True)
    ]
    has_mark = any(re.search(r"&\w+;|@-@", text) for text in sides)
    return (sides[0], sides[1]) if has_mark else pair


def loses_a_tag(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """Both sides have a word in bold, but the target lacks the end of it."""
    if not all(map(_WORD.search, pair)):
        return pair
    source = _WORD.sub(r"<b>\g<0></b>", pair[0], count=1)
    return source, _WORD.sub(r"<b>\g<0>", pair[1], count=1)


def loses_a_value(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """The source has a placeholder, and the target has none."""
    value = draw.choice(["%s", "%d", "{name}", "{0}", "%(count)d", "${total}"])
    return _WORD.sub(lambda _: value, pair[0], count=1), pair[1]


def changes_a_number(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """Changes the first digit of a number above 12."""
    found = _NUMBER.search(pair[1])
    if not found:
        return pair
    digit = str(int(found[0][0]) % 9 + 1)
    return pair[0], f"{pair[1][: found.start()]}{digit}{pair[1][found.start() + 1 :]}"


def loses_a_number(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """Removes a number above 12."""
    return pair[0], _NUMBER.sub("", pair[1], count=1)


def with_control(pair: Pair, other: Pair, draw: random.Random) -> Pair:
    """A control character in the target."""
    place = draw.randrange(len(pair[1]) + 1)
    return pair[0], pair[1][:place] + draw.choice("\0\x02\x07\x1b\x7f") + pair[1][place:]


FAULTS: dict[str, tuple[str, Fault]] = {
    "a copy of an earlier pair": (COPIES, as_it_is),
    "the source is copied": ("identical", untranslated),
    "the source is copied in lower case": ("identical", nearly_untranslated),
    "the target has a fifth of its words": ("length_ratio", on_target(cut_to(5))),
    "the target has half of its words": ("length_ratio", on_target(cut_to(2))),
    "the target has two more lines": ("length_ratio", with_another_target),
    "the target is of another pair": (NO_RULE, of_another_pair),
    "the sides are swapped": ("language", swapped),
    FOREIGN: ("language", of_another_pair),
    "UTF-8 read as Windows-1252": ("wrong_encoding", on_both(misread("utf-8", "cp1252"))),
    "UTF-8 read as Latin-1": ("wrong_encoding", on_both(misread("utf-8", "latin-1"))),
    "UTF-8 read as code page 850": ("wrong_encoding", on_both(misread("utf-8", "cp850"))),
    "UTF-8 read as Mac Roman": ("wrong_encoding", on_both(misread("utf-8", "mac-roman"))),
    "Windows-1252 read as UTF-8": ("wrong_encoding", on_both(misread("cp1252", "utf-8"))),
    "Windows-1252 read as Latin-1": ("wrong_encoding", on_both(misread("cp1252", "latin-1"))),
    "Latin-1 read as Latin-2": ("wrong_encoding", on_both(misread("latin-1", "iso8859-2"))),
    "other letters are question marks": (
        "wrong_encoding",
        on_both(lambda text: text.encode("ascii", "replace").decode()),
    ),
    "the target is dots": ("no_letters", on_target(lambda text: "...")),
    "the target lacks a tag": ("tags", loses_a_tag),
    "a number is changed": ("numbers", changes_a_number),
    "a number is lost": ("numbers", loses_a_number),
    "a placeholder is lost": ("placeholders", loses_a_value),
    "the text is tokenized by Moses": ("moses_escapes", tokenized_by_moses),
    "letters are entities": ("html_entities", on_both(with_entities)),
    "letters are entities with numbers": ("html_entities", on_both(with_numeric_entities)),
    "marks of HTML are escaped twice": (
        "html_entities",
        on_both(lambda text: html.escape(with_entities(text))),
    ),
    "letters are decomposed (NFD)": (
        "unicode_form",
        on_both(lambda text: unicodedata.normalize("NFD", text)),
    ),
    "a control character": ("control_characters", with_control),
}


if __name__ == "__main__":
    command_line.run(main)
