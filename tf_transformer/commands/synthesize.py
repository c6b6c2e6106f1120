"""Makes a corpus of translations: tf-transformer synthesize --run_dir runs/x --text a.en --to c."""

import hashlib
from collections.abc import Sequence
from typing import Any

from tf_transformer.commands import command_line
from tf_transformer.config import DType
from tf_transformer.data.synthetic_corpus import Limits, SyntheticCorpus, Translation
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.reading import read_lines
from tf_transformer.files.streaming import WINDOW, Output, Progress, Stream
from tf_transformer.files.writing import one_line
from tf_transformer.inference.notices import Notice
from tf_transformer.machine.imports import import_tensorflow
from tf_transformer.run.run import Run

MIN_SCORE, MAX_RATIO = -2.0, 3.0
PROBLEMS = {
    Notice.CUT: "source longer than --max_source_length",
    Notice.LENGTH_LIMIT: "translation at its length limit",
}


def main(
    run_dir: LocalPath,
    text: LocalPath,
    to: LocalPath,
    min_score: float = MIN_SCORE,
    max_ratio: float = MAX_RATIO,
    window: int = WINDOW,
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Translates a text, and keeps good translations as a corpus of training pairs.

    The folder gets translations.jsonl, with the score of each translation, pairs.jsonl, which is
    the corpus, and card.json, with the numbers of lines that were kept and dropped. The same
    command continues an interrupted translation. Complete translations are kept when the limits
    change.

    Args:
        run_dir: folder of the run; a,b,c for an ensemble of three runs with one target vocabulary.
        text: file to translate, one sentence per line.
        to: folder of the corpus.
        min_score: least mean log-probability of the tokens of a translation, nats.
        max_ratio: most tokens of the longer side per token of the shorter side.
        window: most lines that are read, sorted by length and translated together. An interruption
            loses at most one window.
        dtype: dtype of weights and computation.
        **decode_options: fields of DecodeConfig; null: the value in the run's config.yaml.
    """
    run, corpus = Run.load(run_dir, **decode_options), SyntheticCorpus(to)
    if run.config.task.name != "translation":
        raise InputError(f"expected a run of translation, got one of {run.config.task.name}.")
    content = hashlib.sha256()
    for line in read_lines(text):
        content.update(line + b"\n")
    options = {name: str(value) for name, value in run.search_options().items()}
    origin = run.identities() | {"--text": content.hexdigest(), "--dtype": dtype} | options
    corpus.begin(origin)
    if not corpus.translations.exists():
        output = Output(str(corpus.translations), lambda _, translation: [translation.to_json()])
        stream = Stream([text], [output], window, resume=True)
        stream.depends_on({}, origin)

        import_tensorflow()
        from tf_transformer.inference.predictor import load_predictor
        from tf_transformer.machine.threads import use_one_thread_per_batch

        use_one_thread_per_batch(run.config.decode.parallel_batches)
        stream.run(ScoredTranslations(load_predictor(run, dtype)))
    print(f"{corpus.pairs}: {corpus.select(Limits(min_score, max_ratio))}")


class ScoredTranslations:
    """A step of a `Stream` from lines to their translations."""

    def __init__(self, predictor: Any):
        self._predictor = predictor

    def __call__(self, texts: Sequence[str], progress: Progress) -> list[Translation]:
        predictor = self._predictor
        predictions = predictor(texts, progress=progress)
        targets = [one_line(prediction.text) for prediction in predictions]
        scores = predictor.score(texts, targets)
        sides = {"source": texts, "target": targets}
        encoded = [predictor.codec.encode_batch(side, lines) for side, lines in sides.items()]
        result = []
        for i, (text, target) in enumerate(zip(texts, targets, strict=True)):
            lengths = [len(rows[i]) for rows in encoded]
            score, ratio = scores[i].log_probability / lengths[1], max(lengths) / min(lengths)
            problems = [PROBLEMS[x] for x in predictions[i].notices if x in PROBLEMS]
            result.append(Translation(text, target, score, ratio, "".join(problems[:1])))
        return result


if __name__ == "__main__":
    command_line.run(main)
