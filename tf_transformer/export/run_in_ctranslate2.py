"""Translates with the folder that `python -m export --format ctranslate2` writes.

    python export/run_in_ctranslate2.py FOLDER < sentences
    python export/run_in_ctranslate2.py FOLDER TRANSLATIONS < sentences

Prints a line of JSON for each line read: {"translation": ..., "score": ...}; in the second form,
where TRANSLATIONS is a file with a line for each line read, what the model gives those: {"score":
..., "log_probability": ...}. Imports only ctranslate2 and sentencepiece, so what runs here runs
without TensorFlow.

CTranslate2's beam search is this project's, step by step, but for these:

- It divides the log-probability of a hypothesis by length^α, this project by
  ((5 + length) / 6)^α; both count the end token. A whole beam is asked for here, scored anew, and
  the best of it taken. When more hypotheses end than the beam holds CTranslate2 has left the worst
  of them out by its own penalty. Who calls `translate_batch` directly gets its choice instead,
  which is a longer translation at times.
- With α = 0 it stops when its best hypothesis ends. A very small α makes it go on.
- It has one limit for all sentences of a call, so that only sentences of one length share a call.
- `min_decoding_length` does not count the end token.
- Where tokens are ruled out, by a shortest length, for example, it makes the other probabilities
  sum to 1 again, and scores come out higher. For that reason padding and the start token are not
  ruled out here: a trained model gives them next to nothing, and decoding drops them.
"""

import collections
import json
import math
import pathlib
import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import ctranslate2
import sentencepiece

BATCH_SIZE = 32
ROUNDING = 1e-3  # so that 100 · 0.53, a little under 53 in float32, is 53
NO_EARLY_EXIT = 1e-9  # an α that divides by 1, and is not 0


class Translation(NamedTuple):
    """A translation and its score: log-probability over length penalty."""

    translation: str
    score: float


class PairScore(NamedTuple):
    """What the model gives a translation: log-probability over length penalty, and without."""

    score: float
    log_probability: float


class Model:
    """An exported folder, ready to translate strings.

    Args:
        folder: the exported folder.
        compute_type: what CTranslate2 computes in; default: what the weights are kept in, where
            the device can.
        threads: how many one translation has; 0: CTranslate2's choice.
        device: cpu or cuda.
    """

    def __init__(
        self, folder: str, compute_type: str = "default", threads: int = 0, device: str = "cpu"
    ):
        path = pathlib.Path(folder)
        self.search = json.loads((path / "search.json").read_text("utf-8"))
        self.tokenizer = sentencepiece.SentencePieceProcessor(
            model_proto=(path / "tokenizer.model").read_bytes()
        )
        self.translator = load(folder, device, compute_type=compute_type, intra_threads=threads)

    def __call__(self, texts: Sequence[str]) -> list[Translation]:
        """The best translation of each text."""
        return [found[0] for found in self.n_best(texts)]

    def n_best(self, texts: Sequence[str]) -> list[list[Translation]]:
        """All hypotheses of the beam, best first."""
        sources = self.tokenizer.encode(list(texts), out_type=str)
        result = [[Translation("", 0.0)] for _ in texts]
        for length, indices in self.by_length(sources).items():
            found = self.translator.translate_batch(
                [sources[i] for i in indices], **self.options(length)
            )
            for i, each in zip(indices, found, strict=True):
                result[i] = self.scored_anew(each.hypotheses, each.scores)
        return result

    def score(self, texts: Sequence[str], translations: Sequence[str]) -> list[PairScore]:
        """What the model gives each of `translations`, as a translation of its text."""
        found = self.translator.score_batch(
            self.tokenizer.encode(list(texts), out_type=str),
            self.tokenizer.encode(list(translations), out_type=str),
            max_batch_size=BATCH_SIZE,
            max_input_length=self.search["max_source_length"],
        )
        alpha = self.search["length_penalty"]
        rows = [(sum(each.log_probs), len(each.log_probs)) for each in found]
        return [PairScore(total / penalty(length, alpha), total) for total, length in rows]

    def by_length(self, sources: Sequence[Sequence[str]]) -> dict[int, list[int]]:
        """Numbers of sources with any tokens, under their lengths with the end token."""
        groups = collections.defaultdict(list)
        for i, tokens in enumerate(sources):
            if tokens:
                groups[min(len(tokens) + 1, self.search["max_source_length"])].append(i)
        return groups

    def options(self, length: int) -> dict[str, Any]:
        """What `translate_batch` is asked for, for sources of so many tokens."""
        search = self.search
        most = int(length * search["max_length_ratio"] + ROUNDING) + search["max_extra_length"]
        most = max(1, min(most, search["max_length"] or most, search["positions"]))
        fewest = math.ceil(length * search["min_length_ratio"] - ROUNDING)
        fewest = min(most, max(fewest, search["min_length"]))
        return {
            "beam_size": search["beam_size"],
            "num_hypotheses": search["beam_size"],
            "length_penalty": search["length_penalty"] or NO_EARLY_EXIT,
            "max_decoding_length": most,
            "min_decoding_length": max(0, fewest - 1),
            "max_input_length": search["max_source_length"],
            "no_repeat_ngram_size": search["no_repeat_ngram_size"],
            "suppress_sequences": [[token] for token in search["excluded_tokens"]] or None,
            "disable_unk": search["avoid_unknown"],
            "max_batch_size": BATCH_SIZE,
            "return_scores": True,
            "return_end_token": True,  # it counts
        }

    def scored_anew(
        self, hypotheses: Sequence[Sequence[str]], scores: Sequence[float]
    ) -> list[Translation]:
        """A beam's hypotheses with this project's scores, best first."""
        alpha = self.search["length_penalty"]
        found = [
            Translation(
                self.text(tokens), score * len(tokens) ** alpha / penalty(len(tokens), alpha)
            )
            for tokens, score in zip(hypotheses, scores, strict=True)
        ]
        return sorted(found, key=lambda each: -each.score)

    def text(self, tokens: Sequence[str]) -> str:
        """The line that tokens spell; special ones, like the end token, spell nothing."""
        return self.tokenizer.decode([self.tokenizer.piece_to_id(token) for token in tokens])


def penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^α."""
    return ((5 + length) / 6) ** alpha


def load(folder: str, device: str, **options: Any) -> ctranslate2.Translator:
    """Loads in a thread that ends, because OpenMP's threads end with it.

    Those of a main thread would go on spinning in wait for more to do, beside TensorFlow or
    whatever else runs, and make both up to twenty times slower.
    """
    loaded: list[ctranslate2.Translator] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            loaded.append(ctranslate2.Translator(folder, device, **options))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return loaded[0]


def lines_of(content: bytes) -> list[str]:
    """Lines, which only newlines end; broken UTF-8 is replaced."""
    lines = content.split(b"\n")
    return [line.decode("utf-8", "replace") for line in (lines[:-1] if not lines[-1] else lines)]


def main(folder: str, translations: str = "") -> None:
    """Translates stdin, or scores a file of translations of it."""
    model, texts = Model(folder), lines_of(sys.stdin.buffer.read())
    found: Sequence[NamedTuple]
    if translations:
        found = model.score(texts, lines_of(pathlib.Path(translations).read_bytes()))
    else:
        found = model(texts)
    for row in found:
        print(json.dumps(row._asdict(), ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
