"""The word alignments of a training text: from a file beside its pairs to rows of a batch.

A batch has no matrix of links. It has ranges of pieces, which are small: the pieces of a source
word, and the pieces of the target word that is linked to it.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import in_folder, training_corpora
from tf_transformer.data.examples import ExampleStream, Texts
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_aligned
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import clean
from tf_transformer.text.word_alignment import LINKS, from_line, to_line

MULTIPLE = 32  # of the length of a row, 8 links: batches have few shapes, and no row is empty


def with_links(stream: ExampleStream, data: DataConfig) -> ExampleStream:
    """The pairs of a training text with the links of their words as a third text, `LINKS`.

    It is a line of the Pharaoh format, empty in a corpus without alignments. A pass raises an
    `InputError` for a line that is none, or that links a word which its pair does not have.
    """
    corpora = training_corpora(in_folder(data))
    if not stream.parts:
        return _linked(stream, corpora[0], has_tag=False)
    return ExampleStream.joined(
        [
            part._replace(stream=_linked(part.stream, corpus, bool(part.tag)))
            for part, corpus in zip(stream.parts, corpora, strict=True)
        ]
    )


def _linked(stream: ExampleStream, corpus: Corpus, has_tag: bool) -> ExampleStream:
    """The pairs of one corpus with their links. A tag is a word before the words of the source."""

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        pairs = stream.start(skipped)
        if not corpus.alignments:
            yield from ((*pair, "") for pair in pairs)
            return
        lines = _lines(corpus)
        for pair in pairs:
            # The stream leaves out pairs of the files, and keeps the order of the others.
            place, line = next((place, line) for place, *texts, line in lines if texts == [*pair])
            yield (*pair, _checked(line, pair, f"line {place:,} of {corpus.alignments}", has_tag))
        if not corpus.limit:
            deque(lines, maxlen=0)  # reads the rest, which shows files of unequal lengths

    fields = (*stream.fields, LINKS)
    return ExampleStream(fields, start, lambda: f"{stream.identity} with {LINKS}")


def _lines(corpus: Corpus) -> Iterator[tuple]:
    """The number of each line of a corpus, its pair, and its links."""
    rows = read_aligned(corpus.source, corpus.target, corpus.alignments)
    return (
        (n, *(text.decode("utf-8", "replace") for text in row)) for n, row in enumerate(rows, 1)
    )


def _checked(line: str, pair: Texts, place: str, has_tag: bool) -> str:
    try:
        links = from_line(line)
    except InputError as error:
        raise InputError(f"{place}: {error}.") from error
    source, target = (len(clean(text).split()) for text in pair)
    for link in links:
        if link[0] >= source or link[1] >= target:
            raise InputError(
                f"{place} has the link {link[0]}-{link[1]}, but the pair has {source} and {target} "
                "words, which count from 0. Align the words of text.split(), or leave the line "
                "empty."
            )
    return to_line((word + has_tag, other) for word, other in links)


def rows_of_links(
    lines: Sequence[str], sources: Sequence[str], targets: Sequence[str], codec: Codec
) -> list[list[int]]:
    """The links of words as ranges of pieces: a row for each pair.

    A link has four numbers: its first source piece and the piece after the last one, then the same
    of its target. All pieces of two linked words are linked. Zeros at the end of a row are links of
    no piece. A row has a multiple of `MULTIPLE` numbers.

    Example:
        >>> from tf_transformer.text.tokenizer import BYTES, Tokenizer
        >>> bytes_alone = Codec(Tokenizer.train([], BYTES))
        >>> rows_of_links(["1-0"], ["a house"], ["Haus"], bytes_alone)[0][:6]
        [1, 7, 0, 4, 0, 0]
    """
    rows = []
    for line, source, target in zip(lines, sources, targets, strict=True):
        row: list[int] = []
        if links := from_line(line):
            words = codec.word_of_pieces("source", source), codec.word_of_pieces("target", target)
            for link in links:
                for word_of, word in zip(words, link, strict=True):  # words of pieces rise
                    row += [bisect_left(word_of, word), bisect_right(word_of, word)]
        rows.append(row + [0] * (MULTIPLE - len(row) % MULTIPLE))
    return rows
