"""Translates with a folder from `python -m export --format ctranslate2`; see `standalone_model.py`.

    python FOLDER/translate.pyz --translations TRANSLATIONS < sentences

scores the file TRANSLATIONS; its line n is the translation of line n of the sentences. It prints
{"score": ..., "log_probability": ...}. The program needs the packages ctranslate2, sentencepiece
and NumPy.

CTranslate2's beam search equals the search of this project, with these differences:

- CTranslate2 divides the log-probability of a hypothesis by length^α. This project divides it by
  ((c + length) / (c + 1))^α. Both lengths count the end token, and c is `length_penalty_offset`.
  This program requests the whole beam, computes this project's score of each hypothesis and returns
  the best. If more hypotheses end than the beam holds, CTranslate2 drops the worst by its own
  penalty. A direct call of `translate_batch` returns CTranslate2's choice, which is sometimes a
  longer translation.
- With α = 0, CTranslate2 stops when its best hypothesis ends. A very small α prevents this.
- CTranslate2 has one length limit per call, so only sentences of equal length share a call.
- `min_decoding_length` does not count the end token.
- If tokens are excluded, for example by a minimum length, CTranslate2 normalizes the remaining
  probabilities to a sum of 1, which raises scores. This program therefore does not exclude padding
  and the start token: a trained model hardly ever predicts them, and decoding drops them.
"""

import collections
import concurrent.futures
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.export import standalone_model
from tf_transformer.export.standalone_model import Hypotheses, StandaloneModel

if TYPE_CHECKING:
    from ctranslate2 import TranslationResult, Translator

BATCH_SIZE = 32
ROUNDING = 1e-3  # 100 · 0.53 is slightly below 53 in float32, and must give 53
NO_EARLY_EXIT = 1e-9  # an α above 0 that changes no score
SMALLEST = 1e-9  # sum of attention
ANY_LENGTH = 0  # of inputs, which are cut before


class Model(StandaloneModel):
    """An exported folder, ready to translate strings on cpu or cuda.

    Args:
        folder: path of the folder.
        compute_type: of CTranslate2. default: that of the weights, if the device has it.
        threads: of one call; 0: CTranslate2 chooses the number.
        device: cpu or cuda.
    """

    file, format = "model.bin", "ctranslate2"

    def __init__(
        self,
        folder: str | os.PathLike,
        compute_type: str = "default",
        threads: int = 0,
        device: str = "cpu",
    ):
        super().__init__(folder)
        self._source, self._target = (
            self.texts.codec[side].pieces for side in ("source", "target")
        )
        self._ids = {piece: token for token, piece in enumerate(self._target)}
        self.translator = load(self.path, device, compute_type=compute_type, intra_threads=threads)
        self._process = os.getpid()

    def search(self, sources: Sequence[Sequence[int]]) -> list[Hypotheses]:
        return list(map(self._rescored, self.beams(sources)))

    def beams(self, sources: Sequence[Sequence[int]]) -> "list[TranslationResult]":
        """CTranslate2's results for rows of source ids, in its own order."""
        self._require_own_process()
        by_length = collections.defaultdict(list)
        for place, ids in enumerate(sources):
            by_length[len(ids)].append(place)
        found: dict[int, TranslationResult] = {}
        for length, places in by_length.items():
            batch = [self.pieces(sources[place]) for place in places]
            results = self.translator.translate_batch(batch, **self.limits(length))
            found.update(zip(places, results, strict=True))
        return [found[place] for place in range(len(sources))]

    def limits(self, length: int) -> dict[str, Any]:
        """The options of `translate_batch` for sources of `length` tokens."""
        options = self.options
        longest = int(length * options["max_length_ratio"] + ROUNDING) + options["max_extra_length"]
        longest = max(1, min(longest, options["max_length"] or longest, self.facts["positions"]))
        shortest = math.ceil((length - 1) * options["min_length_ratio"] - ROUNDING)
        shortest = min(longest, 1 + max(shortest, options["min_length"]))
        return {
            "beam_size": options["beam_size"],
            "num_hypotheses": options["beam_size"],
            "length_penalty": options["length_penalty"] or NO_EARLY_EXIT,
            "max_decoding_length": longest,
            "min_decoding_length": max(0, shortest - 1),
            "max_input_length": ANY_LENGTH,
            "no_repeat_ngram_size": options["no_repeat_ngram_size"],
            "suppress_sequences": [[token] for token in options["excluded_tokens"]] or None,
            "disable_unk": options["avoid_unknown"],
            "max_batch_size": BATCH_SIZE,
            "return_scores": True,
            "return_end_token": True,  # the length includes it
        }

    def log_probabilities(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> list[float]:
        self._require_own_process()
        results = self.translator.score_batch(
            [self.pieces(source) for source, _ in pairs],
            [[self._target[token] for token in target[:-1]] for _, target in pairs],
            max_batch_size=BATCH_SIZE,
            max_input_length=ANY_LENGTH,
        )
        return [sum(result.log_probs) for result in results]

    def attend(self, source: Sequence[int], target: Sequence[int]) -> np.ndarray:
        """The attention of a head or of the heads of a layer; see `StandaloneModel.attend`."""
        self._require_own_process()
        pieces = [self._target[token] for token in target]
        (result,) = self.translator.translate_batch(
            [self.pieces(source)],
            target_prefix=[pieces[:-1]],
            beam_size=1,
            max_decoding_length=len(pieces),
            max_input_length=ANY_LENGTH,
            return_attention=True,
        )
        found = np.array(result.attention[0], np.float32)  # without the end token
        weights = np.zeros((len(target), len(source)), np.float32)
        weights[: len(found), : found.shape[1]] = found
        return weights / np.maximum(weights.sum(axis=1, keepdims=True), SMALLEST)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of source ids without the end token, which CTranslate2 adds."""
        return [self._source[token] for token in ids[:-1]]

    def text(self, pieces: Sequence[str]) -> str:
        """The text of pieces of the target, up to the end token."""
        return self.texts.codec.decode("target", [self._ids[piece] for piece in pieces])

    def _rescored(self, beam: "TranslationResult") -> Hypotheses:
        """A beam with this project's scores, best first. Hypotheses have the end token."""
        alpha, rows = self.options["length_penalty"], []
        for pieces, score in zip(beam.hypotheses, beam.scores, strict=True):
            total = score * len(pieces) ** alpha
            rows.append((total / self.penalty(len(pieces)), total, pieces))
        rows.sort(key=lambda row: -row[0])
        scores, totals, hypotheses = (list(column) for column in zip(*rows, strict=True))
        ids = [[self._ids[piece] for piece in pieces] for pieces in hypotheses]
        return Hypotheses(ids, scores, totals)

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise InputError("CTranslate2 cannot compute in a fork. Load the model in each worker.")


def load(folder: str | os.PathLike, device: str, **options: Any) -> "Translator":
    """Loads the model in a thread that ends, so that its OpenMP threads end, too.

    The OpenMP threads of the main thread would spin while idle. They would compete with TensorFlow
    and all other programs for the cores, and make both up to twenty times slower.
    """
    import ctranslate2

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(ctranslate2.Translator, str(folder), device, **options).result()


def main(folder: str, translations: str = "") -> list[dict[str, Any]]:
    """Translates the lines of stdin, or scores a file of their translations."""
    return standalone_model.results(Model(folder), translations)


if __name__ == "__main__":
    standalone_model.run(main, "ctranslate2", __doc__, translations="file of translations to score")
