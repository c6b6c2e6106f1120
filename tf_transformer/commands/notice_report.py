"""Reports the texts whose translations have notices."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tf_transformer.inference.notices import Notice

if TYPE_CHECKING:
    from tf_transformer.inference.predictor import Prediction

LISTED = 10  # line numbers in a report
REPORTED = {
    Notice.CUT: "cut to {longest:,} tokens (--max_source_length)",
    Notice.LENGTH_LIMIT: "output ends at its length limit",
    Notice.LONG_INPUT: "longer than the lines of training, at most {trained:,} tokens (divide it)",
    Notice.SEVERAL_LINES: "several lines, read as one (try --split sentences)",
    Notice.SEVERAL_SENTENCES: "several sentences; some may be lost (try --split sentences)",
    Notice.PLACEHOLDERS: "placeholders differ between input and output",
    Notice.EMPTY: "empty output (try --min_length 1)",
    Notice.SCRIPT: "output has a word in another script",
    Notice.NUMBERS: "numbers differ between input and output",
    Notice.LOOP: "output repeats a phrase (try --no_repeat_ngram_size 4)",
    Notice.UNTRANSLATED: "output has the words of the input",
    Notice.LENGTH_RATIO: "output much longer or shorter than the input",
    Notice.UNSEEN: "words that the training never saw, which few models translate right: {unseen}",
}


class NoticeReport:
    """Counts the texts whose best prediction has notices, after `done` earlier texts."""

    def __init__(self, predictor: Any, done: int = 0):
        self._predictor = predictor
        self._done = done
        self._counts = dict.fromkeys(REPORTED, 0)
        self._first: dict[Notice, list[int]] = {notice: [] for notice in REPORTED}
        self._unseen = Counter[str]()

    def add(self, n_best: "Sequence[Sequence[Prediction]]") -> None:
        """Counts the next texts, by the predictions of each."""
        for number, (best, *_) in enumerate(n_best, self._done + 1):
            self._unseen.update(best.unseen_words)
            for notice in best.notices:
                self._counts[notice] += 1
                if self._counts[notice] <= LISTED:
                    self._first[notice].append(number)
        self._done += len(n_best)

    def text(self, texts: Sequence[str] = ()) -> str:
        """A line of text for each notice that occurred, like "empty output: 2 lines (3, 5)".

        With the texts of a document, it shows their starts in place of the numbers of lines.
        """
        limits = {
            "longest": self._predictor.max_source_length,
            "trained": self._predictor.config.trained_source_length,
            "unseen": ", ".join(word for word, _ in self._unseen.most_common(LISTED)),
        }
        lines = []
        for notice, text in REPORTED.items():
            if count := self._counts[notice]:
                numbers = self._first[notice]
                shown = [f"{texts[n - 1]!r:.40}" if texts else str(n) for n in numbers]
                listed = ", ".join(shown) + ", ..." * (count > LISTED)
                where = f"{count:,} {'text' if texts else 'line'}{'s' * (count > 1)} ({listed})"
                lines.append(f"{text.format(**limits)}: {where}\n")
        return "".join(lines)
