"""The notices that texts and their translations show, on tensors."""

from collections.abc import Iterable, Sequence

import tensorflow as tf

from tf_transformer.inference.notices import Notice
from tf_transformer.text import faults
from tf_transformer.text.graph_splitter import has_several_sentences
from tf_transformer.text.normalization import LETTERS, class_of
from tf_transformer.text.splitting import END, LINE_ENDS
from tf_transformer.text.target_tag import BLANK

RARE = (
    *(Notice.SEVERAL_LINES, Notice.SEVERAL_SENTENCES, Notice.EMPTY),
    *(Notice.SCRIPT, Notice.NUMBERS),
)
OF_PAIRS = (*RARE, Notice.LOOP, Notice.UNTRANSLATED, Notice.LENGTH_RATIO)
_LATIN = "\\x00-\u024f\u1e00-\u1eff\u2000-\u22ff"  # with marks and symbols


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
        some_number, line_end = f"[{class_of(('Nd',))}]", f"[{LINE_ENDS}]"
        # What a text or a translation with a rare notice has.
        # Inside the loop of a search, so many operations would take several times as long.
        self._of_rows = tf.function(
            self._shown,
            input_signature=[tf.TensorSpec((None,), tf.string)] * 2,
            autograph=False,
            experimental_attributes={"_noinline": True},
        )
        self._rare = f"(?s:.*(?:{some_number}|[^{_LATIN}]|{END}|{line_end}).*)?"

    def __call__(self, text: tf.Tensor, translation: tf.Tensor) -> tf.Tensor:
        """For strings (B,) and (B,), valid UTF-8 without NUL: bool (B, K), K as in `OF_PAIRS`."""
        return self._of_rows(text, translation)

    def _shown(self, text: tf.Tensor, translation: tf.Tensor) -> tf.Tensor:
        pairs = faults.Pairs.of(text, translation)
        may_have = tf.reduce_any(tf.strings.regex_full_match(pairs.strings, self._rare))
        rare = tf.cond(
            may_have,
            faults.apart(lambda: self._rare_of(pairs, text, translation)),
            lambda: tf.zeros((len(RARE), tf.size(text)), tf.bool),
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
                *(lines, has_several_sentences(text), has_letters & ~is_text),
                faults.has_wrong_script(pairs, self._scripts),
                faults.has_other_numbers(pairs) & is_text,
            ]
        )


def names_of(is_shown: tf.Tensor, notices: Iterable[Notice]) -> tf.Tensor:
    """The names of the notices that bool (..., K) marks, with a space after each: string (...).

    Example:
        >>> names_of([True, False, True], (Notice.CUT, Notice.LOOP, Notice.NUMBERS)).numpy()
        b'cut numbers '
    """
    names = tf.where(is_shown, [f"{notice} " for notice in notices], "")
    return tf.strings.reduce_join(names, axis=-1)


def union_of(names: tf.Tensor, notices: Iterable[Notice] = tuple(Notice)) -> tf.Tensor:
    """The different names in strings (B,), in the order of `notices`, as `names_of`: string (B,).

    Example:
        >>> union_of(tf.constant(["loop cut ", "loop cut loop "])).numpy().tolist()
        [b'cut loop ', b'cut loop ']
    """
    notices = tuple(notices)

    def union() -> tf.Tensor:
        columns = [tf.strings.regex_full_match(names, rf"(?:.* )?{x} .*") for x in notices]
        return names_of(tf.stack(columns, axis=-1), notices)

    return tf.cond(tf.reduce_any(tf.not_equal(names, "")), faults.apart(union), lambda: names)
