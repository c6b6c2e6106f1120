"""The notices that texts and their translations show, on tensors."""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import tensorflow as tf

from tf_transformer.decoding import NEG_INF
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.text_graph import STRINGS
from tf_transformer.text import faults
from tf_transformer.text.graph_splitter import has_several_sentences
from tf_transformer.text.kept_spans import IN_CODES
from tf_transformer.text.normalization import LETTERS, WHITE_SPACE, class_of
from tf_transformer.text.splitting import LINE_ENDS, STOPS
from tf_transformer.text.target_tag import BLANK

RARE = (
    *(Notice.SEVERAL_LINES, Notice.SEVERAL_SENTENCES, Notice.PLACEHOLDERS, Notice.EMPTY),
    *(Notice.SCRIPT, Notice.NUMBERS),
)
OF_PAIRS = (*RARE, Notice.LOOP, Notice.UNTRANSLATED, Notice.LENGTH_RATIO)
ALL = (Notice.CUT, Notice.LENGTH_LIMIT, Notice.LONG_INPUT, *OF_PAIRS, Notice.UNSEEN)
# For a function that is one operation of other graphs: TensorFlow runs a small function in one
# thread, in a fraction of the time that as many operations between threads take.
_IN_ONE_THREAD = {"_noinline": True}
_LATIN = [*range(0x250), *range(0x1E00, 0x1F00), *range(0x2000, 0x2300)]  # with marks and symbols


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
        self._of_rows = tf.function(
            self._shown,
            input_signature=[STRINGS, STRINGS],
            autograph=False,
            experimental_attributes=_IN_ONE_THREAD,
        )

    def __call__(self, text: tf.Tensor, translation: tf.Tensor) -> tf.Tensor:
        """For strings (B,) and (B,), valid UTF-8 without NUL: bool (B, K), K as in `OF_PAIRS`."""
        return self._of_rows(text, translation)

    def of_all(self, text: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
        """The same for strings (B,) and their predictions (B, N): bool (B, N, K)."""
        shape = tf.shape(predictions)
        texts = tf.broadcast_to(text[:, None], shape)
        shown = self(*(tf.reshape(side, [-1]) for side in (texts, predictions)))
        return tf.reshape(shown, tf.concat([shape, [len(OF_PAIRS)]], axis=0))

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


class Searched(NamedTuple):
    """The parts of texts, their predictions, and what the search says about them."""

    text: tf.Tensor  # string (P,), clean, without target tags
    predictions: tf.Tensor  # string (P, N)
    cut: tf.Tensor  # bool (P,), and so are the next two; see `Notice`
    at_limit: tf.Tensor
    is_long: tf.Tensor
    text_of: tf.Tensor | None  # int64 (P,): index of the text of each part; None: texts are whole


class Warnings:
    """The output `warnings`: the names of the notices of texts, with a space between two.

    Most texts have none, and one cheap test for all texts of a batch finds that.
    """

    def __init__(self, pair_notices: PairNotices):
        self._pair_notices = pair_notices
        self._names = tf.function(
            self._of_texts, autograph=False, experimental_attributes=_IN_ONE_THREAD
        )

    def __call__(self, parts: Searched, unseen: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        """The warnings, string (B, N), of texts with these unseen words, string (B,).

        `scores`, float32 (B, N), are those of the predictions. Empty places have no warnings.
        """
        return self._names(parts, unseen, scores)

    def _of_texts(self, parts: Searched, unseen: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        may_have = may_show(parts.text, parts.predictions)
        may_have |= tf.reduce_any(parts.cut | parts.at_limit | parts.is_long)
        may_have |= tf.reduce_any(tf.not_equal(unseen, ""))

        def names() -> tf.Tensor:
            of_pairs = self._pair_notices.of_all(parts.text, parts.predictions)
            of_parts = tf.stack([parts.cut, parts.at_limit, parts.is_long], axis=1)[:, None]
            shown = tf.concat([of_parts & tf.ones_like(of_pairs[..., :1]), of_pairs], axis=2)
            if parts.text_of is not None:
                shown = tf.math.segment_max(tf.cast(shown, tf.int32), parts.text_of) > 0
            is_unseen = tf.not_equal(unseen, "")[:, None, None] & tf.ones_like(shown[..., :1])
            names = tf.strings.strip(names_of(tf.concat([shown, is_unseen], axis=2), ALL))
            return tf.where(scores > NEG_INF, names, "")

        return tf.cond(may_have, faults.apart(names), lambda: tf.fill(tf.shape(scores), ""))


def may_show(text: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
    """Whether texts (B,) and predictions (B, N) may have one of `OF_PAIRS`: bool scalar."""
    pairs = faults.Pairs.of(text, tf.reshape(predictions, [-1]))
    is_usual = tf.strings.regex_full_match(pairs.strings, _ordinary_text())
    is_usual &= ~faults.may_stutter(pairs.strings)
    may_repeat = pairs.repeated >= faults.FEWEST_REPEATED
    differ = tf.reduce_any(faults.differ_in_size(text[:, None], predictions))
    return ~tf.reduce_all(is_usual) | may_repeat | differ


@functools.cache
def _ordinary_text() -> str:
    """The pattern of texts, and of translations, that have no `RARE` notice.

    They have Latin letters, marks and symbols in one line, no digits, at most one sentence, and no
    code of a program. So simple a pattern takes a fraction of the time of those of the notices.
    """

    def usual_but(characters: str) -> str:
        never = re.compile(f"[{LINE_ENDS}{IN_CODES}:0-9{characters}]")
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
