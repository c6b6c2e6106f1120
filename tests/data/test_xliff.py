"""XLIFF files as corpora: which units are pairs, and their inline codes."""

import pathlib

import pytest

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import read_test, stream
from tf_transformer.errors import InputError

FIELDS = ("source", "target")
V1 = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
    '<file original="a" source-language="en" target-language="de" datatype="x"><body>\n'
    "{}</body></file></xliff>"
)
V2 = (
    '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
    'trgLang="de-DE">\n<file id="f">\n{}</file></xliff>'
)


@pytest.fixture
def write(tmp_path):
    """Writes a file with units and gives its corpus."""

    def write(units: str, document: str = V1, **options) -> Corpus:
        (tmp_path / "a.xlf").write_text(document.format(units), "utf-8")
        return Corpus(path=str(tmp_path / "a.xlf"), **options)

    return write


def examples(corpus: Corpus):
    return stream([corpus], FIELDS, DataConfig()).read()


def unit1(source: str, target: str, attributes: str = "", more: str = "") -> str:
    return f'<trans-unit id="1" {attributes}><source>{source}</source>{target}{more}</trans-unit>\n'


def unit2(source: str, target: str, attributes: str = "") -> str:
    return (
        f'<unit id="1"><segment {attributes}><source>{source}</source>{target}</segment></unit>\n'
    )


def test_only_finished_targets_of_1_2_are_pairs(write, capsys):
    units = [
        unit1("one", "<target>eins</target>", 'approved="yes"'),
        unit1("two", '<target state="translated">zwei</target>'),
        unit1("three", '<target state="new">drei</target>'),
        unit1("four", '<target state="needs-review-translation">vier</target>'),
        unit1("five", '<target state="needs-translation">five</target>'),
        unit1("six", "<target> </target>"),
        unit1("seven", ""),
        unit1("eight", "<target>acht</target>", 'translate="no"'),
        '<group translate="no">',
        unit1("nine", "<target>neun</target>")
        + unit1("ten", "<target>zehn</target>", 'translate="yes"'),
        "</group>",
        unit1(
            "eleven",
            "<seg-source><mrk mtype='seg' mid='0'>no</mrk></seg-source><target>elf</target>",
            more="<alt-trans><source>no</source><target>nein</target></alt-trans>",
        ),
        unit1("Language: de", "<target>Language: de</target>", 'restype="x-gettext-domain-header"'),
        unit1("twelve", '<target xml:lang="fr">douze</target>'),
    ]
    corpus = write("".join(units))
    read = examples(corpus)
    sources, targets = ["one", "two", "ten", "eleven"], ["eins", "zwei", "zehn", "elf"]
    assert read.texts == {"source": sources, "target": targets}
    assert read.skipped == {
        "in state new": 1,
        "in state needs-review-translation": 1,
        "in state needs-translation": 1,
        "untranslated": 2,
        'with translate="no"': 2,
        "header of gettext": 1,
        "without en or de": 1,
    }
    assert read_test(corpus, FIELDS, DataConfig()) == [sources, targets]
    assert ', 2 untranslated, 2 with translate="no"' in capsys.readouterr().err


def test_only_finished_segments_of_2_0_are_pairs(write):
    units = [
        unit2("one", "<target>eins</target>"),
        unit2("two", "<target>zwei</target>", 'state="final"'),
        unit2("three", "<target>drei</target>", 'state="initial"'),
        unit2("four", ""),
        '<group translate="no">' + unit2("a", "<target>b</target>") + "</group>",
        '<unit id="3"><mtc:matches xmlns:mtc="urn:x"><mtc:match><source>no</source>'
        "<target>nein</target></mtc:match></mtc:matches>"
        "<segment><source>First. </source><target>Erstens. </target></segment>"
        "<ignorable><source> </source></ignorable>"
        "<segment><source>Second.</source><target>Zweitens.</target></segment></unit>",
    ]
    read = examples(write("".join(units), V2))
    assert read.texts == {
        "source": ["one", "two", "First. ", "Second."],
        "target": ["eins", "zwei", "Erstens. ", "Zweitens."],
    }
    assert read.skipped == {"in state initial": 1, "untranslated": 1, 'with translate="no"': 1}


def test_either_side_may_be_the_source(write):
    corpus = write(unit1("one", "<target>eins</target>"), columns=("de", "en"))
    assert examples(corpus).texts == {"source": ["eins"], "target": ["one"]}


def test_files_of_several_languages(write):
    other = '</body></file><file source-language="en-US" target-language="{}"><body>'
    units = [
        unit1("one", "<target>un</target>"),
        other.format("de-AT") + unit1("two", "<target>zwei</target>"),
        other.format("fr") + unit1("three", "<target>trois</target>"),
    ]
    document = V1.replace('target-language="de"', 'target-language="fr"')
    read = examples(write("".join(units), document))
    assert read.texts == {"source": ["two"], "target": ["zwei"]}
    assert read.skipped == {"without en or de": 2}


def divided(**parts: str) -> str:
    """The content of a divided side: parts by mid, with a letter before it."""
    return " ".join(f'<mrk mtype="seg" mid="{k[1:]}">{x}</mrk>' for k, x in parts.items())


def test_a_divided_unit_gives_a_pair_for_each_of_its_parts(write):
    """Parts belong together by mid, in the order of the source."""
    code, bold = '<x id="1" ctype="lb"/>', '<g id="1">{}</g>'
    sides = [
        ({"s1": "One.", "s2": f"Two{code}lines."}, {"s2": f"Zwei{code}Zeilen.", "s1": "Eins."}),
        ({"s1": "Three.", "s2": "Four."}, {"s1": "Drei.", "s2": ""}),
        ({"s1": "Five.", "s2": "Six."}, {"s1": "Fünf."}),
        ({"s1": "Seven.", "s2": "Eight."}, {"s1": "Sieben.", "s3": "Acht."}),
    ]
    units = [
        f"<trans-unit><source>no</source><seg-source>{bold.format(divided(**source))}</seg-source>"
        f"<target>{bold.format(divided(**target))}</target></trans-unit>"
        for source, target in sides
    ]
    units[3] = units[3].replace("no", "Seven. Eight.")
    units.append(units[0].replace("<target>", '<target state="needs-translation">'))
    read = examples(write("".join(units)))
    sources = ["One.", "Two lines.", "Three.", "Five.", "Seven. Eight."]
    assert read["source"] == sources
    assert read["target"] == ["Eins.", "Zwei Zeilen.", "Drei.", "Fünf.", "Sieben. Acht."]
    assert read.skipped == {"untranslated": 2, "in state needs-translation": 2}


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        # bold and bolder: around words
        ('a <g id="1" ctype="bold">bold</g>er word', "a bolder word"),
        ('<bpt id="1">&lt;b&gt;</bpt>bold<ept id="1">&lt;/b&gt;</ept>er', "bolder"),
        ('<bx id="1"/>bold<ex id="1"/>er <mrk mtype="term">te</mrk>rm', "bolder term"),
        # alone
        ('First<x id="1" ctype="lb"/>second<ph id="2">&lt;br/&gt;</ph>third', "First second third"),
        # values of programs
        (
            '<ph id="1">%d</ph> files in <x id="2" equiv-text="{{ folder }}"/>',
            "%d files in {{ folder }}",
        ),
        ('a<x id="1" equiv-text="&lt;b&gt;"/>b<ph id="2" equiv-text="{0}"/>', "ab{0}"),
        ('a<ph id="1">&lt;img alt="<sub>no</sub>"&gt;</ph>b', "a b"),
        ("<![CDATA[a < b]]> &amp; c", "a < b & c"),
    ],
)
def test_inline_codes_of_1_2(write, segment, expected):
    read = examples(write(unit1(segment, f"<target>{segment}</target>")))
    assert read.texts == {"source": [expected], "target": [expected]}


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        ('a <pc id="1">bold</pc>er <mrk id="m" type="term">te</mrk>rm', "a bolder term"),
        (
            '<sc id="1"/>bold<ec startRef="1"/>er<cp hex="0001"/><sm id="2"/>!<em startRef="2"/>',
            "bolder!",
        ),
        ('one<ph id="1" subType="xlf:lb"/>two', "one two"),
        ('<ph id="1" dataRef="d1"/> files<ph id="2" dataRef="d2"/>left', "%d files left"),
        ('Hello <ph id="1" equiv="INTERPOLATION" disp="{{name}}"/>!', "Hello {{name}}!"),
        ('a<pc id="1" dataRefStart="d3" dataRefEnd="d4">b</pc>c', "a b c"),
        ('a<pc id="1" dispStart="&lt;b&gt;" dispEnd="&lt;/b&gt;">b</pc>c', "abc"),
    ],
)
def test_inline_codes_of_2_0(write, segment, expected):
    codes = {"d1": "%d", "d2": "&lt;br/&gt;", "d3": "&lt;p&gt;", "d4": "&lt;/p&gt;"}
    data = "".join(f'<data id="{name}">{code}</data>' for name, code in codes.items())
    sides = f"<source>{segment}</source><target>{segment}</target>"
    unit = f'<unit id="1"><originalData>{data}</originalData><segment>{sides}</segment></unit>'
    assert examples(write(unit, V2)).texts == {"source": [expected], "target": [expected]}


def test_elements_may_have_a_prefix_and_the_file_another_encoding(write, tmp_path):
    text = (
        '<?xml version="1.0" encoding="UTF-16"?>'
        '<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2">'
        '<x:file source-language="EN" target-language="de"><x:body><x:trans-unit>'
        '<x:source>a<x:x id="1"/>b</x:source><x:target>ä</x:target>'
        "</x:trans-unit></x:body></x:file></x:xliff>"
    )
    corpus = write("")
    pathlib.Path(corpus.path).write_text(text, "utf-16")
    assert examples(corpus).texts == {"source": ["a b"], "target": ["ä"]}


@pytest.mark.parametrize(
    ("units", "document", "message"),
    [
        (unit1("a", ""), V1, "no example in .* can be used: 1 untranslated"),
        (unit1("a", "<target>b"), V1, r"line 3 of .*a\.xlf is not well-formed XML: mismatched tag"),
        (
            unit1("a &x; ", "<target>b</target>"),
            V1,
            "line 3 of .* XML: undefined entity in <source>",
        ),
        (unit2("a", "<target>b</target>"), V2.replace("de-DE", "fr"), "its languages are en, fr"),
        ("", V1, "no translation unit in en and de; its languages are none"),
        ("", "<tmx>{}</tmx>", "holds <tmx>; expected XLIFF 1.2 or 2.0"),
    ],
)
def test_errors_name_file_and_line(write, units, document, message):
    with pytest.raises(InputError, match=message):
        examples(write(units, document))
