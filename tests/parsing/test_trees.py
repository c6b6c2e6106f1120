"""Bracket files: cleaning against trees written by hand, errors with file and line."""

import pytest

from tf_transformer.errors import InputError
from tf_transformer.parsing.trees import clean, one_line, parse, read_trees

CLEANED = {
    "( (S (NP-SBJ-1 (DT the) (NN dog)) (VP=2 (VBZ barks))) )": (
        "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"
    ),
    "(TOP (S (VP (VB go))))": "(S (VP (VB go)))",
    "( (S (NP-SBJ (-NONE- *-1)) (VP (TO to) (VP (VB go) (NP (-NONE- *T*-1))))))": (
        "(S (VP (TO to) (VP (VB go))))"
    ),
    "( (S (-LRB- -LRB-) (ADVP|PRT (RB up)) (PRP$ its) (-RRB- -RRB-)))": (
        "(S (-LRB- -LRB-) (ADVP (RB up)) (PRP$ its) (-RRB- -RRB-))"
    ),
    "( (NN word) )": "(TOP (NN word))",
    "( (NP (NN one)) (NP (NN two)) )": "(TOP (NP (NN one)) (NP (NN two)))",
}


@pytest.mark.parametrize(("text", "expected"), CLEANED.items())
def test_traces_functions_and_outer_brackets_are_removed(text, expected):
    assert one_line(clean(parse(text, "here"), "here")) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("(S (X a))\n\n(S (X b)\n  (Y c)\n", "a.mrg, line 3: the tree that begins here is not"),
        ("(S (X a))\n)\n", "a.mrg, line 2: expected '(', the start of a tree, got ')' without"),
        ("(S (X a))\nno tree\n", "a.mrg, line 2: expected '(', the start of a tree, got 'no'"),
        ("(S (X a)) (S)\n", "a.mrg, line 1: expected a tree with words"),
        ("\n( (S (-NONE- *)))\n", "a.mrg, line 2: expected a tree with words"),
        ("(S\n (NP the dog))\n", "a.mrg, line 1: expected brackets with a tag and a word"),
    ],
)
def test_an_error_names_file_and_line(tmp_path, content, message):
    (tmp_path / "a.mrg").write_text(content)
    with pytest.raises(InputError) as error:
        list(read_trees(str(tmp_path / "a.mrg")))
    assert str(error.value).startswith(str(tmp_path / message))


def test_folders_and_patterns_are_read_by_number(tmp_path):
    for number in (10, 9, 1):
        (tmp_path / f"wsj_{number}.mrg").write_text(f"(S (X {number}))\n  (S\n(X more))")
    folder = [tree.leaves()[0] for tree, _ in read_trees(str(tmp_path))]
    assert folder == ["1", "more", "9", "more", "10", "more"]
    parts = f"{tmp_path}/wsj_10.mrg,{tmp_path}/wsj_?.mrg"
    assert [tree.leaves()[0] for tree, _ in read_trees(parts)][::2] == ["10", "1", "9"]
    for name in ("c1", "*"):  # a pattern is a name where such a file exists
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.mrg").write_text(f"(S (X {name}))")
    (tmp_path / "wsj_[1].mrg").write_text("(S (X literal))")
    for path, word in (("*", "*"), ("c[1]", "c1"), ("wsj_[1].mrg", "literal")):
        assert [tree.leaves() for tree, _ in read_trees(f"{tmp_path}/{path}")] == [[word]]
    with pytest.raises(InputError, match="expected a file, a folder with"):
        list(read_trees(f"{tmp_path}/wsj_10.mrg,{tmp_path}/nothing"))
