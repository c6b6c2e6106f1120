"""Translates with a folder from `python -m export --format ctranslate2`.

    python export/run_in_ctranslate2.py FOLDER < sentences
    python export/run_in_ctranslate2.py FOLDER TRANSLATIONS < sentences

The first form prints one JSON object per line read: {"translation": ..., "score": ...}. The second
form scores the file TRANSLATIONS; its line n is the translation of line n of the sentences. It
prints {"score": ..., "log_probability": ...}. The program imports only ctranslate2 and
sentencepiece, so it runs without TensorFlow. It reads and divides text like the commands, because
it runs files of the package by their path, such as text_lines.py.

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
import contextlib
import itertools
import json
import math
import os
import pathlib
import re
import runpy
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import ctranslate2
    import sentencepiece

USAGE = "usage: python export/run_in_ctranslate2.py FOLDER [TRANSLATIONS] < SENTENCES"
BATCH_SIZE = 32
ROUNDING = 1e-3  # 100 · 0.53 is slightly below 53 in float32, and must give 53
NO_EARLY_EXIT = 1e-9  # an α above 0 that changes no score
REQUIRED = "required"  # as the target tag of a folder: each text has its own
PACKAGE = pathlib.Path(__file__).parents[1]

Form = Callable[[str], str]
capitals, target_tag, model_file, unigrams, unknown = (
    runpy.run_path(str(PACKAGE / "text" / f"{name}.py"))
    for name in ("capitals", "target_tag", "sentencepiece_file", "unigrams", "unknown")
)
split_tag = target_tag["split_tag"]


class Translation(NamedTuple):
    """A translation and its score, the log-probability divided by the length penalty."""

    translation: str
    score: float


class PairScore(NamedTuple):
    """The score of a given translation."""

    score: float  # log-probability divided by the length penalty
    log_probability: float  # nats


class Model:
    """An exported folder, ready to translate strings on cpu or cuda.

    With `compute_type` default, the computation has the dtype of the weights, if possible. With 0
    threads, CTranslate2 chooses the number.
    """

    def __init__(
        self, folder: str, compute_type: str = "default", threads: int = 0, device: str = "cpu"
    ):
        import sentencepiece

        path = pathlib.Path(folder)
        self.search = json.loads((path / "search.json").read_text("utf-8"))
        self.translator = load(folder, device, compute_type=compute_type, intra_threads=threads)
        files = [path / f"tokenizer.{side}.model" for side in ("source", "target")]
        if not files[0].is_file():  # one vocabulary
            files = [path / "tokenizer.model"] * 2
        self.source, self.target = (
            Pieces(sentencepiece.SentencePieceProcessor, file.read_bytes()) for file in files
        )
        self.process = os.getpid()

    def __call__(self, texts: Sequence[str]) -> list[Translation]:
        """The best translation of each text."""
        return [row[0] for row in self.n_best(texts)]

    def n_best(self, texts: Sequence[str]) -> list[list[Translation]]:
        """All translations of the beam for each text, best first, without repeated texts."""
        texts = self.as_list("texts", texts)
        forms, sources = self.read(texts)
        result = [[Translation("", 0.0)] for _ in texts]
        for i, text in enumerate(texts):
            _, rest = split_tag(clean(text), self.source.tags)
            if sources[i] and self.is_copied(rest):
                result[i], sources[i] = [Translation(rest, 0.0)], []
        by_length = collections.defaultdict(list)  # with the end token
        for i, tokens in enumerate(sources):
            if tokens:
                by_length[min(len(tokens) + 1, self.search["max_source_length"])].append(i)
        for length, indices in by_length.items():
            batch = [sources[i] for i in indices]
            results = self.translator.translate_batch(batch, **self.options(length))
            for i, translated in zip(indices, results, strict=True):
                result[i] = self.rescore(translated.hypotheses, translated.scores, forms[i] or str)
        return result

    def score(self, texts: Sequence[str], translations: Sequence[str]) -> list[PairScore]:
        """The model's score of a given translation of each text; 0 for a pair of empty texts."""
        texts = self.as_list("texts", texts)
        translations = self.as_list("translations", translations)
        if len(texts) != len(translations):
            raise ValueError(
                f"expected as many translations as texts, got {len(translations)} translations and "
                f"{len(texts)} texts."
            )
        forms, sources = self.read(texts)
        translations = sentences_where(forms, translations)
        targets = self.target([split_tag(clean(x), self.target.tags) for x in translations])
        results = self.translator.score_batch(
            *(sources, targets),
            max_batch_size=BATCH_SIZE,
            max_input_length=self.search["max_source_length"],
        )
        rows = [
            (sum(scored.log_probs) if source or target else 0.0, len(scored.log_probs))
            for scored, source, target in zip(results, sources, targets, strict=True)
        ]
        return [PairScore(total / self.penalty(length), total) for total, length in rows]

    def as_list(self, name: str, texts: Iterable[str]) -> list[str]:
        """Checks texts, and makes a list of them; `name` is for the error."""
        if os.getpid() != self.process:
            raise ValueError("CTranslate2 cannot compute in a fork. Load the model in each worker.")
        is_list = isinstance(texts, Iterable) and not isinstance(texts, str | bytes | Mapping)
        items: list[Any] = list(texts) if is_list else [None]
        if not all(isinstance(item, str) for item in items):
            raise ValueError(f"expected a list of {name}, got {texts!r:.80}.")
        return items

    def options(self, length: int) -> dict[str, Any]:
        """The options of `translate_batch` for sources of `length` tokens."""
        search = self.search
        longest = int(length * search["max_length_ratio"] + ROUNDING) + search["max_extra_length"]
        longest = max(1, min(longest, search["max_length"] or longest, search["positions"]))
        shortest = math.ceil((length - 1) * search["min_length_ratio"] - ROUNDING)
        shortest = min(longest, 1 + max(shortest, search["min_length"]))
        return {
            "beam_size": search["beam_size"],
            "num_hypotheses": search["beam_size"],
            "length_penalty": search["length_penalty"] or NO_EARLY_EXIT,
            "max_decoding_length": longest,
            "min_decoding_length": max(0, shortest - 1),
            "max_input_length": search["max_source_length"],
            "no_repeat_ngram_size": search["no_repeat_ngram_size"],
            "suppress_sequences": [[token] for token in search["excluded_tokens"]] or None,
            "disable_unk": search["avoid_unknown"],
            "max_batch_size": BATCH_SIZE,
            "return_scores": True,
            "return_end_token": True,  # the length includes it
        }

    def read(self, texts: Sequence[str]) -> tuple[list[Form | None], list[list[str]]]:
        """What puts a translation in the case of each text, and the pieces of each text.

        The pieces have the tag of the target language, and are those of a usual sentence if there
        is a form. A text that starts with a wrong tag, or that lacks a needed one, is a
        `ValueError`.
        """
        tag = self.search.get("target_tag", "")  # older folders do not have it
        lowers = self.search.get("lower_capitals", False)
        cleaned = list(map(clean, texts))
        parts = [split_tag(text, self.source.tags) for text in cleaned]
        names = ", ".join(sorted(self.source.tags))
        for text, (own, rest) in zip(cleaned, parts, strict=True) if names else ():
            if (wrong := target_tag["wrong_tag"](text, self.source.tags)) is not None:
                raise ValueError(f"unknown target tag {wrong!r:.60}; this model has {names}.")
            if tag == REQUIRED and rest and not own:
                raise ValueError(
                    f"the model has several target languages, {names}, and {text!r:.60} has none. "
                    "Start it with one of them, or export with --target_tag."
                )
        rests = [rest for _, rest in parts]
        forms = [capitals["form_of"](rest) if lowers else None for rest in rests]
        tags = [(own or tag) if rest else "" for own, rest in parts]
        return forms, self.source(list(zip(tags, sentences_where(forms, rests), strict=True)))

    def is_copied(self, text: str) -> bool:
        """Whether a text without its tag is its own translation, with score 0."""
        if self.search.get("lower_capitals") and capitals["is_short_word"](text):
            return True
        return bool(self.search.get("copy_without_letters")) and not has_letters(text)

    def penalty(self, length: int) -> float:
        """((c + length) / (c + 1))^α."""
        offset = self.search.get("length_penalty_offset", 5.0)  # older folders do not have it
        return ((offset + length) / (offset + 1)) ** self.search["length_penalty"]

    def rescore(
        self, hypotheses: Sequence[Sequence[str]], scores: Sequence[float], form: Form = str
    ) -> list[Translation]:
        """The translations of a beam, in their form, with this project's scores, best first.

        Hypotheses are tokens with the end token.
        """
        alpha, rescored = self.search["length_penalty"], []
        for tokens, score in zip(hypotheses, scores, strict=True):
            total = score * len(tokens) ** alpha
            rescored.append(Translation(form(self.text(tokens)), total / self.penalty(len(tokens))))
        rescored.sort(key=lambda candidate: -candidate.score)
        if not self.search.get("distinct", True):  # older folders do not have this option
            return rescored
        best: dict[str, Translation] = {}
        for candidate in rescored:
            best.setdefault(candidate.translation, candidate)
        return list(best.values())

    def text(self, tokens: Sequence[str]) -> str:
        """The text of tokens, without special tokens like the end token."""
        kept = whole_characters(tokens)
        processor = self.target.processor
        return processor.decode([processor.piece_to_id(token) for token in kept])


class Pieces:
    """Tags and clean texts to pieces, as by the project's `Tokenizer.encode_batch`.

    It takes sentencepiece's class of processors, and a serialized SentencePiece model.
    """

    def __init__(self, make_processor: "type[sentencepiece.SentencePieceProcessor]", model: bytes):
        self.processor = make_processor(model_proto=model)
        self.unigrams = None
        if model_file["read_options"](model).segmentation == model_file["UNIGRAM"]:
            self.unigrams = unigrams["Unigrams"](model_file["read_pieces"](model))
        ids = list(range(self.processor.get_piece_size()))
        names = self.processor.id_to_piece(list(filter(self.processor.is_control, ids)))
        self.tags = set(filter(target_tag["TAG"].fullmatch, names))  # of target languages
        scores = enumerate(self.processor.get_score(ids))
        self.looked_up = {token for token, score in scores if score == unknown["LOOKED_UP"]}

    def __call__(self, parts: Sequence[tuple[str, str]]) -> list[list[str]]:
        """The pieces of each tag and text. The tag may be empty."""
        return [[tag] * bool(tag) + self.divided(text) for tag, text in parts]

    def divided(self, text: str) -> list[str]:
        """The pieces of a clean text without a tag."""
        if self.unigrams is None:
            ids = self.processor.encode(text)
        else:
            ids = self.unigrams.divide(self.processor.normalize(text)).ids
        if self.looked_up:
            ids = unknown["joined"](ids, self.looked_up, self.processor.unk_id()).values()
        return self.processor.id_to_piece(list(ids))


def clean(text: str) -> str:
    """The text without NUL; "" for a text of only white space, control and format characters."""
    # U+FFFD replaces lone surrogates.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    is_blank = all(unicodedata.category(character) in target_tag["BLANK"] for character in text)
    return "" if is_blank else text.replace("\0", "")


def has_letters(text: str) -> bool:
    """Whether the text has a letter of any script."""
    return any(unicodedata.category(character).startswith("L") for character in text)


def sentences_where(forms: Sequence[Form | None], texts: Sequence[str]) -> list[str]:
    """The texts, as usual sentences where there is a form."""
    pairs = zip(texts, forms, strict=True)
    return [capitals["sentence"](text) if form else text for text, form in pairs]


def whole_characters(tokens: Sequence[str]) -> Iterator[str]:
    """The tokens without incomplete UTF-8 and NUL: bytes that form no character are left out."""
    is_byte = re.compile("<0x[0-9A-F]{2}>").fullmatch
    for are_bytes, part in itertools.groupby(tokens, lambda token: bool(is_byte(token))):
        if are_bytes:
            text = bytes(int(token[3:5], 16) for token in part).decode("utf-8", "ignore")
            yield from (f"<0x{byte:02X}>" for byte in text.replace("\0", "").encode("utf-8"))
        else:
            yield from part


def load(folder: str, device: str, **options: Any) -> "ctranslate2.Translator":
    """Loads the model in a thread that ends, so that its OpenMP threads end, too.

    The OpenMP threads of the main thread would spin while idle. They would compete with TensorFlow
    and all other programs for the cores, and make both up to twenty times slower.
    """
    import ctranslate2

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(ctranslate2.Translator, folder, device, **options).result()


def main(folder: str, translations: str = "") -> None:
    """Translates the lines of stdin, or scores a file of their translations."""
    if not (pathlib.Path(folder) / "search.json").is_file():
        sys.exit(
            f"error: {folder} is not an exported folder on this machine. Make one: python -m "
            "export --format ctranslate2."
        )
    if translations and not pathlib.Path(translations).exists():
        sys.exit(f"error: {translations} is not a file. Check the path.")
    text = runpy.run_path(str(PACKAGE / "files" / "text_lines.py"))

    def texts_of(path: str) -> list[str]:
        with open(path, "rb") if path else contextlib.nullcontext(sys.stdin.buffer) as file:
            lines = text["lines_of"](text["chunks_of"](file), path or text["STDIN"])
            return [line.decode("utf-8", "replace") for line in lines]

    try:
        model = Model(folder)
        texts = texts_of("")
        results: Sequence[NamedTuple]
        results = model.score(texts, texts_of(translations)) if translations else model(texts)
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error.name} is not installed: pip install ctranslate2 sentencepiece")
    except (text["TextError"], ValueError) as error:
        sys.exit(f"error: {error}")
    for row in results:
        line = json.dumps(row._asdict(), ensure_ascii=False)
        sys.stdout.buffer.write(line.encode("utf-8") + b"\n")


if __name__ == "__main__":
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print(f"{USAGE}\n\n{__doc__}")
    elif not 1 <= len(words) <= 2 or words[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    else:
        main(*map(os.path.expanduser, words))
