"""The notices that texts and their translations show, on tensors."""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence

import tensorflow as tf

from tf_transformer.inference.notices import Notice
from tf_transformer.inference.text_graph import STRINGS, Traced
from tf_transformer.text import faults
from tf_transformer.text.graph_splitter import has_several_sentences
from tf_transformer.text.normalization import LETTERS, WHITE_SPACE, class_of
from tf_transformer.text.splitting import LINE_ENDS, STOPS
from tf_transformer.text.target_tag import BLANK

RARE = (
    *(Notice.SEVERAL_LINES, Notice.SEVERAL_SENTENCES, Notice.PLACEHOLDERS, Notice.EMPTY),
    *(Notice.SCRIPT, Notice.NUMBERS),
)
OF_PAIRS = (*RARE, Notice.LOOP, Notice.UNTRANSLATED, Notice.LENGTH_RATIO)
_LATIN = [*range(0x250), *range(0x1E00, 0x1F00), *range(0x2000, 0x2300)]  # with marks and symbols
_IN_CODES = r"%{<&$@\\\[_:"  # each placeholder has one of them; a colon stands before a letter


class PairNotices:
    r"""Which notices texts and their translations show.

    A notice is for the user: it is no test.

    Args:
        scripts: those of the target language; see `faults.scripts_of`. Empty: not known.

    Example:
        >>> is_shown = PairNotices()(tf.constant(["One.\nTwo."]), tf.constant(["eins eins eins"]))
        >>> [notice.value for notice, x in zip(OF_PAIRS, is_shown[0]) if x]
        ['several_lines', 'loop']
    """

    def __init__(self, scripts: Sequence[int] = ()):
        self._scripts = scripts
        self._of_rows = Traced(self._shown, STRINGS, STRINGS)

    def __call__(self, text: tf.Tensor, translation: tf.Tensor) -> tf.Tensor:
        """For strings (B,) and (B,), valid UTF-8 without NUL: bool (B, K), K as in `OF_PAIRS`."""
        return self._of_rows(text, translation)

    def _shown(self, text: tf.Tensor, translation: tf.Tensor) -> tf.Tensor:
        pairs = faults.Pairs.of(text, translation)
        rare = tf.cond(
            tf.reduce_all(tf.strings.regex_full_match(pairs.strings, _ordinary_text())),
            lambda: tf.zeros((len(RARE), tf.size(text)), tf.bool),
            faults.apart(lambda: self._rare_of(pairs, text, translation)),
        )
        others = faults.has_loop(pairs), faults.is_copy(pairs), faults.is_out_of_proportion(pairs)
        is_text = tf.not_equal(translation, "")
        shown = tf.concat([rare, tf.stack(others) & is_text], axis=0)
        return tf.transpose(shown)

    def _rare_of(self, pairs: faults.Pairs, text: tf.Tensor, translation: tf.Tensor) -> tf.Tensor:
        """The `RARE` notices, bool (K, B)."""
        seen, is_text = f"[^{class_of(BLANK)}]", tf.not_equal(translation, "")
        lines = tf.strings.regex_full_match(text, f"(?s).*{seen}.*[{LINE_ENDS}].*{seen}.*")
        has_letters = tf.strings.regex_full_match(text, f"(?s).*[{class_of(LETTERS)}].*")
        return tf.stack(
            [
                *(lines, has_several_sentences(text), faults.has_other_placeholders(pairs)),
                has_letters & ~is_text,
                faults.has_wrong_script(pairs, self._scripts),
                faults.has_other_numbers(pairs) & is_text,
            ]
        )


@functools.cache
def _ordinary_text() -> str:
    """The pattern of texts, and of translations, that have no `RARE` notice.

    They have Latin letters, marks and symbols in one line, no digits, at most one sentence, and no
    code of a program. So simple a pattern takes a fraction of the time of those of the notices.
    """

    def usual_but(characters: str) -> str:
        never = re.compile(f"[{LINE_ENDS}{_IN_CODES}0-9{characters}]")
        codes = [code for code in _LATIN if not never.match(chr(code))]
        runs = itertools.groupby(enumerate(codes), lambda place: place[1] - place[0])
        ranges = [[code for _, code in run] for _, run in runs]
        return "".join(rf"\x{{{run[0]:X}}}-\x{{{run[-1]:X}}}" for run in ranges)

    unit = f"[{usual_but(STOPS)}]|:[{usual_but(STOPS + 'a-z')}]"
    end = f"[{usual_but(WHITE_SPACE[1:-1])}]"  # a space behind a stop may end a sentence
    return f"(?:{unit})*(?:{unit}|{end}){end}*:?"


def names_of(is_shown: tf.Tensor, notices: Iterable[Notice]) -> tf.Tensor:
    """The names of the notices that bool (..., K) marks, with a space after each: string (...).

    Example:
        >>> names_of([True, False, True], (Notice.CUT, Notice.LOOP, Notice.NUMBERS)).numpy()
        b'cut numbers '
    """
    names = tf.where(is_shown, [f"{notice} " for notice in notices], "")
    return tf.strings.reduce_join(names, axis=-1)
