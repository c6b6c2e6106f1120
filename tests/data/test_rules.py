"""The rules for faults of pairs, by pairs with the fault and by sound pairs that resemble them."""

import pytest

from tf_transformer.data.rules import RULES, chosen, faults
from tf_transformer.errors import InputError

# By rule: pairs with the fault, and pairs without.
PAIRS = {
    "identical": (
        [("Where is it?", "Where  is it?"), ("Where is it?", "where is it")],
        [("Tom Sawyer", "Tom Sawyer"), ("1 2 3", "1 2 3"), ("A b c", "A b d")],
    ),
    "length_ratio": (
        [("a house", "das ist ein sehr langer Satz ohne Sinn"), ("x" * 41, "x" * 10)],
        [("Hi.", "Guten Tag."), ("x" * 40, "x" * 10), ("日本語の文", "A sentence.")],
    ),
    "wrong_encoding": (
        [
            *(("Ã¼ber", "about"), ("it", "itâ€™s"), ("k \ufffd nnen", "can"), ("a", "\x93 a \x94")),
            *(("├╝ber", "about"), ("it", "itÔÇÖs"), ("√ºber", "about"), ("it", "it‚Äôs")),
            *(("k?nnen", "can"), ("der B?r (gr?n)", "a")),
        ],
        [
            *(("über it’s „FPÖ“", "Â, Ã and É"), ("JOÃO", "Â"), ("a\u0085b", "c")),
            *(("√2, √π ¬x", "├ a ┬"), ("‚Äpfel‘", "Ô là"), ("Was?Er", "http://a.b/c?d=e a.php?d")),
        ],
    ),
    "no_letters": ([("A house.", "@@"), ("...", "x")], [("17", "***"), ("a", "ж")]),
    "tags": (
        [("<b>a</b>", "<b>a"), ("a", "a<br/>"), ("<p>a", "</p>a")],
        [('<a href="x">y</a>', '<A HREF="z">y</A>'), ("a < b", "a"), ("<3", ":)"), ("a", "a")],
    ),
    "language": (
        [("Where is the next train station?", "Où est la prochaine gare ?")],
        [
            ("Where is the next train station?", "Wo ist der nächste Bahnhof?"),
            ("Gare de Lyon", "Gare de Lyon"),
        ],
    ),
    "numbers": (
        [("in 1998", "im Jahr 1989"), ("20 men", "Männer"), ("13 and 13", "13")],
        [("1,250.50 in 2019", "2019: 1.250,50"), ("5 men", "fünf Männer"), ("$13.00", "13 $")],
    ),
    "placeholders": (
        [("%s files", "Dateien"), ("{name}", "{Name}")],
        [("%s of {n}", "{n}: %s"), ("100 % of it", "alles"), ("a", "b")],
    ),
    "moses_escapes": (
        [("it &apos;s", "es"), ("a", "E @-@ Mail"), ("a ##AT##-##AT## b", "c")],
        [("AT&T", "a@b.c"), ("@-@", "x"), ("&nbsp;", "x")],
    ),
    "html_entities": (
        [("a&nbsp;b", "a"), ("a", "&#228;"), ("&#xE4;", "a"), ("&amp;quot;", "&amp;amp;uuml;")],
        [("AT&T; x", "a"), ("it &apos;s", "es"), ("a & b;", "a")],
    ),
    "unicode_form": ([("u\u0308ber", "x")], [("über", "x"), ("日本", "ж")]),
    "control_characters": ([("a\x07", "b"), ("a", "b\x93")], [("a\tb", "c")]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_each_rule_finds_its_fault_and_nothing_that_resembles_it(name):
    if RULES[name].needs_languages:
        pytest.importorskip("py3langid")
    test = RULES[name].start(("en", "de"))
    with_fault, without = PAIRS[name]
    assert [pair for pair in with_fault if not test(*pair)] == []
    assert [pair for pair in without if test(*pair)] == []


def test_each_rule_has_pairs():
    assert PAIRS.keys() | {"duplicate"} == RULES.keys()


def test_duplicates_are_those_of_one_pass():
    pairs = [("a", "b"), ("a", "c"), (" a ", "b"), ("a", "b"), ("u\u0308", "b"), ("ü", "b")]
    for _ in range(2):
        test = RULES["duplicate"].start(("en", "de"))
        assert [test(*pair) for pair in pairs] == [False, False, True, True, False, True]


def test_a_pair_may_have_several_faults():
    tests = {
        name: rule.start(("en", "de")) for name, rule in chosen(["numbers", "no_letters"]).items()
    }
    assert faults(tests, "It is 1999.", "!") == ["no_letters", "numbers"]


def test_recommended_rules_can_be_named_together_and_with_others():
    recommended = [name for name, rule in RULES.items() if rule.recommended]
    assert list(chosen(["recommended"])) == recommended
    assert list(chosen(["numbers", "recommended"])) == [*recommended, "numbers"]
    assert chosen([]) == {}


def test_an_unknown_rule_is_an_error():
    with pytest.raises(
        InputError, match="no rule 'lenght'; expected recommended, none, or some of dup"
    ):
        chosen(["lenght", "recommended"])
