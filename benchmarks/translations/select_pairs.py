"""Some pairs of a corpus as a corpus of their own, which a training can learn more often.

    python -m benchmarks.translations.select_pairs --corpus.source train.en \
        --corpus.target train.de --words 4 --to build/short.tsv

A training reads the file by `data.corpora`, with a weight.
"""

from tf_transformer.commands import command_line
from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import check_corpus, stream
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.writing import write_whole


def main(corpus: Corpus, to: LocalPath, words: int = 0, lowercase: bool = False) -> None:
    """Writes pairs with a tab between both sides, and prints their number.

    Args:
        corpus: the corpus, like --corpus.path pairs.tsv.
        to: file to write; a corpus of the format tsv.
        words: most words of a source. 0: any number.
        lowercase: whether to write both sides in lower case.
    """
    check_corpus(corpus)
    pairs = stream((corpus,), ("source", "target"), DataConfig())
    lines = [
        f"{source}\t{target}\n"
        for source, target in pairs
        if not words or len(source.split()) <= words
    ]
    write_whole(to, "".join(line.lower() if lowercase else line for line in lines))
    print(f"{len(lines):,} pairs")


if __name__ == "__main__":
    command_line.run(main)
