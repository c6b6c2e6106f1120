"""The notices that texts and their translations show, on tensors."""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence

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
OF_SEARCH = (Notice.CUT, Notice.LENGTH_LIMIT, Notice.LONG_INPUT)
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
        # One operation of other graphs: TensorFlow runs a small function in one thread, in a
        # fraction of the time that as many operations between threads take.
        options = {"autograph": False, "experimental_attributes": {"_noinline": True}}
        self._of_rows = tf.function(self._shown, input_signature=[STRINGS, STRINGS], **options)
        self.warnings = tf.function(self._names, **options)

    def __call__(self, text: tf.Tensor, translation: tf.Tensor) -> tf.Tensor:
        """For strings (B,) and (B,), valid UTF-8 without NUL: bool (B, K), K as in `OF_PAIRS`."""
        return self._of_rows(text, translation)

    def of_all(self, text: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
        """The same for strings (B,) and their predictions (B, N): bool (B, N, K)."""
        shape = tf.shape(predictions)
        texts = tf.broadcast_to(text[:, None], shape)
        shown = self(*(tf.reshape(side, [-1]) for side in (texts, predictions)))
        return tf.reshape(shown, tf.concat([shape, [len(OF_PAIRS)]], axis=0))

    def _names(
        self,
        text: tf.Tensor,
        predictions: tf.Tensor,
        of_search: tf.Tensor,
        unseen: tf.Tensor,
        scores: tf.Tensor,
        text_of: tf.Tensor | None,
    ) -> tf.Tensor:
        """The output `warnings`, string (B, N): the names of the notices of texts.

        Most texts have none, and a cheap test finds that.

        Args:
            text: the parts of texts without tags, string (P,); see `text_of`.
            predictions: those of the parts, string (P, N), or the best of each, (P, 1).
            of_search: which of `OF_SEARCH` the parts have, bool (P, K).
            unseen: the unseen words of the texts, string (B,).
            scores: those of the texts' predictions, float32 (B, N). Empty places have no warnings.
            text_of: index of the text of each part, int64 (P,); None: the texts are whole.
        """
        is_unseen = tf.not_equal(unseen, "")
        rows = tf.where(may_show(text, predictions))  # (R, 1)
        may_have = (tf.size(rows) > 0) | tf.reduce_any(of_search) | tf.reduce_any(is_unseen)

        def names() -> tf.Tensor:
            of_rows = self.of_all(tf.gather_nd(text, rows), tf.gather_nd(predictions, rows))
            none = tf.zeros((*tf.unstack(tf.shape(predictions)), len(OF_PAIRS)), tf.bool)
            of_pairs = tf.tensor_scatter_nd_update(none, rows, of_rows)
            every = tf.ones_like(of_pairs[..., :1])
            shown = tf.concat([of_search[:, None] & every, of_pairs], axis=2)
            if text_of is not None:
                shown = tf.math.segment_max(tf.cast(shown, tf.int32), text_of) > 0
            has_unseen = is_unseen[:, None, None] & tf.ones_like(shown[..., :1])
            shown = tf.concat([shown, has_unseen], axis=2)
            names = names_of(shown, (*OF_SEARCH, *OF_PAIRS, Notice.UNSEEN))
            return tf.where(scores > NEG_INF, tf.strings.strip(names), "")

        return tf.cond(may_have, faults.apart(names), lambda: tf.fill(tf.shape(scores), ""))

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


def may_show(text: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
    """Which texts (B,) with predictions (B, N) may have one of `OF_PAIRS`: bool (B,)."""
    size, count = tf.unstack(tf.shape(predictions))
    pairs = faults.Pairs.of(text, tf.reshape(predictions, [-1]))
    is_usual = tf.strings.regex_full_match(pairs.strings, _ordinary_text())
    is_usual &= ~faults.may_stutter(pairs.strings)
    text_of = tf.concat([tf.range(size), tf.repeat(tf.range(size), count)], axis=0)  # (B + B·N,)
    unusual = tf.math.unsorted_segment_sum(tf.cast(~is_usual, tf.int32), text_of, size)
    text_of_words = tf.cast(tf.gather(text_of, pairs.row), tf.int64)
    words = text_of_words * 2**32 + tf.cast(pairs.ids, tf.int64)
    distinct = tf.unique(words).y
    repeated = _counts(text_of_words, size) - _counts(distinct // 2**32, size)
    differ = tf.reduce_any(faults.differ_in_size(text[:, None], predictions), axis=1)
    return (unusual > 0) | (repeated >= faults.FEWEST_REPEATED) | differ


def _counts(indices: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """How often each index from 0 to `size` - 1 occurs, int32 (B,)."""
    return tf.math.unsorted_segment_sum(tf.ones_like(indices, tf.int32), indices, size)


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
