"""Trains several models with equal budgets, and measures each by the length of the source.

    python -m research.equal_budgets --configs research/configs/multi30k_quick.yaml \
        --option model.position --values sinusoidal,rotary --options '{"train.steps": 4000}' \
        --runs runs/positions --source t.en --reference t.de \
        --output research/results/positions.json
    python -m research.equal_budgets --configs configs/a.yaml,configs/b.yaml ...

The models are those of several configurations, or of one with several values of an option;
`options` replace those of each. With `data.max_length` 15 the training text has no pair with a side
of more than 15 tokens: the scores of longer sources are those of lengths that were never seen
(length extrapolation). The same command again continues runs that were interrupted, and measures
those that are complete.
"""

import functools
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.harness import results
from benchmarks.harness.options import numbers
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import usage_of
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.errors import InputError

ALL = "all"
_WARM_UP = 32  # sentences


class Model(NamedTuple):
    """A model to train: its name in the table, its configuration, and an option that differs."""

    name: str
    config: str
    options: dict[str, Any]


def main(
    configs: str,
    runs: str,
    source: str,
    reference: str,
    option: str = "",
    values: str = "",
    options: dict[str, Any] | None = None,
    average: int = 0,
    buckets: str = "10,15,20,25",
    output: str = "",
) -> None:
    """Prints BLEU and the speed of translation of each model, for all sources and by their length.

    Args:
        configs: configurations of training runs, with commas between them.
        runs: folder for the runs, one for each model.
        source: file of test sentences.
        reference: file of their translations.
        option: an option of train.py that differs between the models of one configuration.
        values: its values, with commas between them.
        options: options of train.py by name, equal for all models, like train.steps.
        average: newest checkpoints to average; 0: as configured.
        buckets: the largest number of source tokens of each bucket but the last.
        output: result file to write, for example research/results/positions.json.
    """
    limits = numbers(buckets)
    texts, references = (first_lines(path, 10**9) for path in (source, reference))
    rows: list[dict[str, Any]] = []
    for model in models(configs, option, values):
        run = pathlib.Path(runs) / model.name
        train(run, model, options or {})
        rows += measured(run, texts, references, limits, average)
    print(of_rows(rows, left=2))
    summary = {"sentences": len(texts), "average": average, "options": options}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


def models(configs: str, option: str, values: str) -> list[Model]:
    """The models that the options of the command name.

    Raises:
        InputError: for an option without values, or with several configurations.
    """
    files = configs.split(",")
    if not option:
        return [Model(pathlib.Path(path).stem, path, {}) for path in files]
    if not values or len(files) > 1:
        raise InputError("--option needs --values and a single configuration.")
    return [Model(value, files[0], {option: value}) for value in values.split(",")]


def train(run: pathlib.Path, model: Model, options: Mapping[str, Any]) -> None:
    """Trains a run by the command that everyone uses, in a process of its own."""
    words = ["--config", model.config, "--run_dir", str(run)]
    for name, value in {**options, **model.options}.items():
        words += [f"--{name}", str(value)]
    program = [sys.executable, "-m", "tf_transformer.commands.main", "train"]
    _, usage = usage_of(lambda: subprocess.run([*program, *words], check=True, stdout=sys.stderr))
    print(f"{run}: trained in {usage.seconds:,.0f} s", file=sys.stderr)


def measured(
    run: pathlib.Path,
    texts: Sequence[str],
    references: Sequence[str],
    limits: Sequence[int],
    average: int = 0,
) -> list[dict[str, Any]]:
    """A row for all translations of a run, then one for each bucket of source lengths.

    The translations are those of the search that the run configures.

    Args:
        run: folder of the run.
        texts: sources.
        references: their translations.
        limits: the largest length of each bucket but the last; empty buckets are left out.
        average: newest checkpoints to average; 0: as the run configures.
    """
    from tf_transformer.inference.translator import Translator

    translator = Translator.from_run(run, average=average or None)
    for warm_up in (texts[:_WARM_UP], texts[:1]):  # a single sentence has a graph of its own
        translator(warm_up)
    lengths = [len(translator.tokenizer.encode(text)) for text in texts]
    rows = []
    for name, first, last in _buckets(limits):
        chosen = [i for i, length in enumerate(lengths) if first <= length <= last]
        if not chosen:
            continue
        sources, expected = ([lines[i] for i in chosen] for lines in (texts, references))
        outputs, usage = usage_of(functools.partial(translator, sources))
        translations = [output.text for output in outputs]
        tokens = sum(len(translator.tokenizer.encode(text)) for text in translations)
        rows.append(
            {"model": run.name, "source_tokens": name, "sentences": len(chosen)}
            | score(translations, expected)
            | {"tokens_per_second": round(tokens / usage.seconds)}
            | {"parameters": translator.model.count_params()}
        )
    return rows


def score(translations: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """BLEU, and the ratio of the lengths of translations and references in words."""
    import sacrebleu

    total = sacrebleu.BLEU().corpus_score(list(translations), [list(references)])
    return {"bleu": round(total.score, 2), "length_ratio": round(total.ratio, 3)}


def _buckets(limits: Sequence[int]) -> list[tuple[str, float, float]]:
    """Name, smallest and largest length of each bucket."""
    firsts = [1, *(limit + 1 for limit in limits)]
    pairs = zip(firsts, limits, strict=False)
    named = [(f"{first} to {last}", float(first), float(last)) for first, last in pairs]
    return [(ALL, 0.0, float("inf")), *named, (f"from {firsts[-1]}", firsts[-1], float("inf"))]


if __name__ == "__main__":
    command_line.run(main)
