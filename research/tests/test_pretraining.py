"""The task of the benchmark of pre-training: excerpts with true labels, and text without them."""

import pytest

from research import pretraining
from tf_transformer.errors import InputError


def test_labelled_lines_are_not_part_of_pretraining(tmp_path):
    for name in ("odd", "even"):
        lines = [f"{name} " + " ".join(f"{name}{i}x{j}" for j in range(9)) for i in range(40)]
        (tmp_path / name).write_text("".join(f"{line.upper()}!\n" for line in lines * 2))
    texts = [f"{name}={tmp_path / name}" for name in ("odd", "even")]
    rows = pretraining.prepare(tmp_path / "run", texts, lines=30, count=11)
    text = (tmp_path / "run" / "text").read_text()
    assert sorted(label for _, label in rows) == ["even"] * 5 + ["odd"] * 6
    assert text.count("\n") == 2 * 30 - 11
    for excerpt, label in rows:
        assert len(excerpt.split()) == pretraining.WORDS
        assert label in excerpt
        assert excerpt not in text


def test_too_few_lines_are_an_error(tmp_path):
    (tmp_path / "a").write_text("one two three four five six seven eight\n")
    texts = [f"{name}={tmp_path / 'a'}" for name in "ab"]
    with pytest.raises(InputError, match="a has 1 different lines of 8 words; expected at least 4"):
        pretraining.prepare(tmp_path, texts, lines=9, count=4)
    with pytest.raises(InputError, match="give at least two texts"):
        pretraining.prepare(tmp_path, texts[:1], lines=9, count=4)
