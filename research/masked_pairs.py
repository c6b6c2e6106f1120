"""Writes the pairs of `learned_symbols`: with spans as text, and with symbols in their place.

    python -m research.masked_pairs --run_dir runs/multi30k_small --pairs build/pairs.jsonl \
        --to build/symbols

Puts random spans into half of the pairs. For symbols, each span that both sides have becomes one of
16 symbols, which stand in the vocabulary in place of 16 rare pieces.
"""

import json
import pathlib
import re
import shutil
import zlib
from collections import Counter

import numpy as np

from tf_transformer.commands import command_line
from tf_transformer.data.augmentation import spans
from tf_transformer.data.augmentation.pairs import END_MARK, Pair, chosen, happens
from tf_transformer.files.reading import read_texts
from tf_transformer.text import sentencepiece_file as model_file
from tf_transformer.text.kept_spans import COMMON, divide, pattern_of
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer

SYMBOLS = "".join(map(chr, range(0xE000, 0xE010)))
PATTERN = pattern_of([f"[{SYMBOLS}]", COMMON])
SPANS = ("emoji", "url", "email", "unit", "unit", "tag", "tag", "element", "element", "code")
UNITS = ("km", "kg", "MB", "°C", "mm", "m", "cm", "l", "GB", "km/h", "g", "kW", "ms", "GHz")
_WORD = re.compile(r"[^\W\d_]{2,}")


def main(run_dir: str, pairs: str, to: str) -> None:
    """Writes the pairs and the first weights of both trainings.

    Args:
        run_dir: the run that both start with.
        pairs: file of pairs, JSON lines with source and target.
        to: folder for text.jsonl, symbols.jsonl and the runs text and symbols.
    """
    folder, rng = pathlib.Path(to), np.random.default_rng(5)
    rows = [json.loads(line) for line in read_texts(pairs)[0]]
    texts = [(row["source"], row["target"]) for row in rows * 2]
    texts = [with_spans(pair, rng) if happens(0.5, rng) else pair for pair in texts]
    for way, written in (("text", texts), ("symbols", [with_symbols(pair) for pair in texts])):
        shutil.copytree(run_dir, folder / way)
        lines = [json.dumps({"source": a, "target": b}) for a, b in written]
        (folder / f"{way}.jsonl").write_text("\n".join(lines) + "\n")
    path = folder / "symbols" / "tokenizer.model"
    path.write_bytes(model_with_symbols(Tokenizer.load(path).model))


def with_spans(pair: Pair, rng: np.random.Generator) -> Pair:
    """The pair with one or two random spans at the same places of both sides."""
    for _ in range(1 + happens(0.3, rng)):
        kind, shared = chosen(SPANS, rng), shared_words(pair)
        ends = [END_MARK.search(text) for text in pair]
        places = [(0, 0), (len(pair[0]), len(pair[1]))]
        places += [(ends[0].start(), ends[1].start())] if ends[0] and ends[1] else []
        places += [(a[side], b[side]) for a, b in shared for side in (0, 1)]
        if kind == "element":
            whole = (0, len(pair[0])), (0, len(pair[1]))
            inside = chosen(shared, rng) if shared and happens(0.8, rng) else whole
            first = spans.draw("opening_tag", rng)
            last = spans.closing_tag(first)
            pair = tuple(
                f"{text[:a]}{first}{text[a:b]}{last}{text[b:]}"
                for text, (a, b) in zip(pair, inside, strict=True)
            )
            continue
        span = number_with_unit(rng) if kind == "unit" else spans.draw(kind, rng)
        place = chosen(places, rng)
        pair = tuple(inserted(*item, span) for item in zip(pair, place, strict=True))
    return pair


def shared_words(pair: Pair) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The places of the words that both sides have once."""
    sides = [list(_WORD.finditer(text)) for text in pair]
    counts = [Counter(match[0] for match in side) for side in sides]
    return [
        (a.span(), b.span())
        for a in sides[0]
        for b in sides[1]
        if a[0] == b[0] and counts[0][a[0]] == counts[1][a[0]] == 1
    ]


def number_with_unit(rng: np.random.Generator) -> str:
    """A number with a unit."""
    number = int(rng.integers(1, 10 ** int(rng.integers(1, 5))))
    return f"{chosen((number, number, number / 10, -number), rng)} {chosen(UNITS, rng)}"


def inserted(text: str, place: int, span: str) -> str:
    """A text with a span between two words."""
    before, after = text[:place].rstrip(), text[place:].lstrip()
    right = " " * bool(after and after[0] not in ".,;:!?")
    return f"{before}{' ' * bool(before)}{span}{right}{after}"


def with_symbols(pair: Pair) -> Pair:
    """The pair with a symbol for each span that both sides have equally often."""
    sides = [divide(text, PATTERN) for text in pair]
    counts = [Counter(filter(None, side[1::2])) for side in sides]
    shared = [span for span, count in counts[0].items() if counts[1][span] == count]
    first = zlib.crc32(pair[0].encode())
    symbols = {
        span: SYMBOLS[(first + i) % len(SYMBOLS)] for i, span in enumerate(shared[: len(SYMBOLS)])
    }
    for side in sides:
        side[1::2] = [symbols.get(span, span) for span in side[1::2]]
    return "".join(sides[0]), "".join(sides[1])


def model_with_symbols(model: bytes) -> bytes:
    """A vocabulary with the symbols in place of the last pieces of several characters."""
    pieces = model_file.read_pieces(model)
    is_long = [len(x.text) > 2 and x.kind == model_file.Kind.NORMAL for x in pieces]
    last = np.flatnonzero(is_long)[-len(SYMBOLS) :]
    for token, symbol in zip(last, SYMBOLS, strict=True):
        pieces[token] = model_file.Piece(symbol, 0.0, model_file.Kind.USER_DEFINED)
    special = (pieces[token].text for token in (UNK_ID, BOS_ID, EOS_ID, PAD_ID))
    names = model_file.SpecialPieces(*special)
    return model_file.with_pieces(model, pieces, len(pieces), names)


if __name__ == "__main__":
    command_line.run(main)
