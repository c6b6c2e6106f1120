"""Scores a run on a test set whose sentences have invisible or unusual characters.

    python -m research.text_forms --run_dir RUN --before TOKENIZER \
        --source t.en --reference t.de

Each form looks like the sentence to a reader. `before` is a tokenizer with other rules.
"""

from collections.abc import Callable

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line


def _in_words(character: str) -> Callable[[str], str]:
    """Puts a character into the middle of each word."""
    return lambda text: " ".join(
        word[: len(word) // 2] + character + word[len(word) // 2 :] for word in text.split(" ")
    )


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "tabs": lambda text: text.replace(" ", "\t"),
    "carriage return at the end": lambda text: text + "\r",
    "byte-order mark at the start": lambda text: "\ufeff" + text,
    "soft hyphens in words": _in_words("\u00ad"),
    "zero-width spaces in words": _in_words("\u200b"),
}


def main(run_dir: str, before: str, source: str, reference: str, output: str = "") -> None:
    """Prints a table of scores.

    Args:
        run_dir: a trained run's folder.
        before: the tokenizer.model that it had before.
        source: file of sentences.
        reference: file of their translations.
        output: result file to write.
    """
    import sacrebleu

    from tf_transformer.inference.translator import Translator
    from tf_transformer.text.codec import Codec
    from tf_transformer.text.tokenizer import Tokenizer

    texts, references = (first_lines(path, 10**9) for path in (source, reference))
    now = Translator.from_run(run_dir)
    old = Translator(now.model, Codec(Tokenizer.load(before)), now.config)
    metric = sacrebleu.BLEU()
    rows: list[dict[str, str | float]] = []
    for name, form in FORMS.items():
        row: dict[str, str | float] = {"form": name}
        for when, translator in (("before", old), ("now", now)):
            translations = [best.text for best in translator([form(text) for text in texts])]
            row[f"bleu_{when}"] = round(metric.corpus_score(translations, [references]).score, 2)
        rows.append(row)
    print(of_rows(rows))
    summary = {"sentences": len(texts), "signature": str(metric.get_signature())}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


if __name__ == "__main__":
    command_line.run(main)
