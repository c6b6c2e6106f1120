"""The tables that are rendered from result files of research/, by name."""

from typing import Any

from benchmarks.figures import blocks
from benchmarks.figures.pages import Book
from benchmarks.figures.rendering import Renderer, fields_of, rows_of, with_sources
from benchmarks.figures.scores import score_table
from benchmarks.harness.results import FOLDERS, ROOT, read
from benchmarks.harness.tables import formatted, markdown, of_rows

LOWER_CASED = {  # by result file
    "multi30k_lc": "the training of Wu et al.",
    "multi30k_lc_rotary": "rotary positions, 6,000 pieces, length penalty 3.0",
    "multi30k_lc_diversified": "data diversification",
    "multi30k_lc_longer": "1,500 more updates on the pairs",
    "multi30k_lc_interpolated": "sequence-level interpolation",
    "multi30k_lc_sampled": "sampled back-translations",
}
CASED = {
    "multi30k": "rotary positions, 6,000 pieces, length penalty 3.0",
    "multi30k_large": "d_model 256 and pre-norm, 38 passes",
    "multi30k_quick": "the paper's model, 30 passes with 2,048 tokens per update",
    "multi30k_simcut": "SimCut, rotary positions and pre-norm, as many passes",
}


def book() -> Book:
    """The pages of research/, which may show results of benchmarks/, too."""
    pages = [ROOT / "research" / "README.md", *sorted(ROOT.glob("research/docs/*.md"))]
    return Book(pages, BLOCKS)


def multi30k() -> str:
    """Scores of each way to translate the test set."""
    header = [
        "checkpoints averaged",
        "numbers",
        "search",
        "BLEU",
        "chrF",
        "translations that differ",
    ]
    rows = [
        [
            str(row["average"]),
            row["dtype"],
            "greedy" if row["beam"] == 1 else f"beam {row['beam']}",
            *(formatted(field, row.get(field)) for field in ("bleu", "chrf", "different")),
        ]
        for row in rows_of("multi30k")
    ]
    return markdown(header, rows, left=3)


def clean_text() -> str:
    """The share of pairs that each rule finds in text as it is, with a column for each corpus."""
    corpora = read("corpus_faults")["summary"]["clean"]
    rules = [field for field in corpora[0] if field not in ("corpus", "pairs")]
    header = ["rule", *(f"{row['corpus']}, {row['pairs']:,} pairs" for row in corpora)]
    return markdown(header, [[rule, *(f"{row[rule]:.2%}" for row in corpora)] for rule in rules])


def profile(name: str) -> str:
    """Shares of time, a row for each part."""
    rows = rows_of(name)
    header = list(rows[0])
    return markdown(
        ["", *header[1:]],
        [[row["part"], *(f"{row[column]:.0%}" for column in header[1:])] for row in rows],
    )


def by_length(name: str, field: str = "bleu") -> str:
    """A number of each model, in a column for each length of sources."""
    rows = rows_of(name)
    columns = list(dict.fromkeys(row["source_tokens"] for row in rows))
    numbers = {(row["model"], row["source_tokens"]): row[field] for row in rows}
    models = dict.fromkeys(row["model"] for row in rows)
    return markdown(
        ["model", *columns],
        [
            [f"`{model}`", *(formatted(field, numbers.get((model, column))) for column in columns)]
            for model in models
        ],
    )


def machine_limits() -> str:
    """Speeds of products and of memory on the machine of the measurements."""
    rows = [
        [
            row["quantity"],
            f"{row['low']:g}"
            if row["low"] == row["high"]
            else f"{row['low']:g} to {row['high']:g}",
            row["unit"],
        ]
        for row in rows_of("machine_limits")
    ]
    return markdown(["", "speed", "unit"], rows)


def experiments(topic: str, kept: bool) -> str:
    """The experiments of a topic that were kept, or those that were not."""
    rows = [
        [row["change"], row["workload"], _effect(row), row["note"]]
        for row in rows_of("experiments")
        if row["topic"] == topic and row["kept"] == kept
    ]
    return markdown(["change", "measured on", "effect", "note"], rows, left=4)


def _effect(row: dict[str, Any]) -> str:
    before, after, unit = row["before"], row["after"], row["unit"]
    if before is None or after is None:
        return "see note"
    if before == after:
        return "no difference"
    if unit.startswith("relative"):
        return f"{after:g} times the {unit.removeprefix('relative ')}"
    return f"{before:,g} → {after:,g} {unit}"


def _experiments_of(topic: str, kept: bool) -> Renderer:
    return lambda: experiments(topic, kept)


FORMULAS = {
    "part": "cost in seconds",
    "formula": "formula",
    "coefficients": "coefficients",
    "error": "median error",
}
ABLATIONS = {
    "row": "row",
    "change": "change",
    "perplexity": "perplexity",
    "bleu": "BLEU",
    "bleu_spread": "± of seeds",
    "parameters": "parameters",
    "seeds": "seeds",
}
OWN: dict[str, Renderer] = {
    "ablations": fields_of("ablations", ABLATIONS, left=2),
    "agreement": fields_of(
        "agreement", {"form": "numbers", "different": "translations that differ", "bleu": "BLEU"}
    ),
    "alignments": fields_of(
        "alignments",
        {
            **{"layer": "decoder layer", "pairs": "pairs", "error_rate": "alignment error rate"},
            **{"precision": "precision", "recall": "recall"},
        },
    ),
    "directions": fields_of(
        "directions",
        {"direction": "direction", "model": "model of", "bleu": "BLEU", "chrf": "chrF"},
        left=2,
    ),
    "guided_alignment": fields_of(
        "guided_alignment",
        {
            **{"system": "aligned by", "attention": "attention of"},
            **{"error_rate": "alignment error rate", "precision": "precision"},
            **{"recall": "recall", "bleu": "BLEU"},
        },
        left=2,
    ),
    "first_defaults": fields_of(
        "first_defaults",
        {
            **{"corpus": "training text", "defaults": "defaults", "cpu_minutes": "CPU minutes"},
            **{
                "vocabulary": "vocabulary",
                "layers": "layers",
                "dropout": "dropout",
                "batch_tokens": "tokens per batch",
            },
            **{"updates": "updates", "bleu": "BLEU", "chrf": "chrF", "bleu_best": "BLEU, best"},
        },
        left=2,
    ),
    "forced_choices": fields_of(
        "forced_choices",
        {"choice": "choice", "bleu": "BLEU", "length_ratio": "length of the translations"},
    ),
    "heads": lambda: of_rows(
        read("heads")["pruned"],
        {"removed": "heads removed", "kept": "heads kept", "bleu": "BLEU"},
    ),
    "guards": fields_of(
        "guards",
        {"run": "model", "score": "score", "pearson": "Pearson", "spearman": "Spearman"},
        left=2,
    ),
    "guards.faults": lambda: of_rows(
        read("guards")["summary"]["faults"],
        {
            **{"translations": "translations", "fault": "fault", "lines": "lines"},
            **{"recall": "recall", "precision": "precision", "alarms": "alarms without a fault"},
        },
        left=2,
    ),
    "notice_cost": fields_of(
        "notice_cost",
        {
            **{"beam_size": "beam", "texts": "texts", "milliseconds": "ms without"},
            **{"longer_least": "least time, %", "longer_median": "median time, %"},
        },
    ),
    "corpus_faults": fields_of(
        "corpus_faults",
        {
            **{"corpus": "corpus", "fault": "fault", "rule": "rule", "pairs": "pairs"},
            **{"recall": "recall", "precision": "precision", "cleaned": "cleaned"},
        },
        left=3,
    ),
    "corpus_faults.clean": lambda: clean_text(),
    "second_search": fields_of(
        "second_search",
        {
            **{"run": "model", "fault": "fault", "way": "way", "lines": "lines"},
            **{"replaced": "replaced", "better": "better", "worse": "worse"},
            **{"chrf_before": "chrF before", "chrf_after": "chrF after"},
        },
        left=3,
    ),
    "kept_spans": fields_of(
        "kept_spans",
        {
            **{"kind": "spans", "lines": "lines"},
            **{"right_text": "kept by the model, text", "right_emoji": "emoji"},
            **{"repaired_text": "repaired, text", "repaired_emoji": "emoji"},
            **{"empty_text": "empty pairs, text", "empty_emoji": "emoji"},
            **{"chrf_text": "chrF, text", "chrf_emoji": "emoji", "seconds_none": "seconds, none"},
            **{"seconds_text": "text", "seconds_emoji": "emoji"},
        },
    ),
    "terms": fields_of(
        "terms",
        {
            **{"run": "model", "lines": "lines", "terms": "terms"},
            **{"present_without": "present without `--terms`, %", "present_with": "with, %"},
            **{"bleu_without": "BLEU without", "bleu_with": "with", "time": "time, ratio"},
        },
    ),
    "inline_terms": fields_of(
        "inline_terms",
        {
            **{"run": "model", "terms_as": "terms as", "bleu_of_all": "BLEU of all lines"},
            **{"exact": "as given, %", "form": "in a form, %"},
            **{"bleu_without": "BLEU without terms", "bleu_with": "with", "time": "time, ratio"},
            **{"exact_other": "others as given, %", "form_other": "in a form, %"},
            "behind_other": "behind the mark, %",
        },
        left=2,
    ),
    "language_models": lambda: of_rows(rows_of("language_models"), left=1),
    "layer_complexity": lambda: of_rows(
        read("layer_complexity")["fitted"],
        {
            "layer": "layer",
            "size": "size",
            "exponent in the paper": "exponent in the paper",
            "exponent of time": "measured, time",
            "exponent of memory": "measured, memory",
        },
        left=2,
    ),
    "layer_complexity.paths": lambda: of_rows(read("layer_complexity")["paths"], left=2),
    "learned_symbols": fields_of(
        "learned_symbols",
        {
            **{"kind": "spans", "lines": "lines", "right_text": "kept, text"},
            **{"right_emoji": "emoji", "right_symbols": "symbols", "chrf_text": "chrF, text"},
            **{"chrf_emoji": "emoji", "chrf_symbols": "symbols", "seconds_text": "seconds, text"},
            **{"seconds_emoji": "emoji", "seconds_symbols": "symbols"},
        },
    ),
    "long_sequences": fields_of(
        "long_sequences",
        {
            "attention": "attention",
            "length": "tokens",
            "fits": "fits",
            "memory_mb": "memory of forward and backward, MB",
            "seconds": "seconds",
            "step_ms": "decoding step, ms",
            "cache_mb": "cache, MB",
        },
    ),
    "long_sequences.exponents": lambda: of_rows(
        read("long_sequences")["summary"]["exponents"],
        {
            "attention": "attention",
            "memory_mb": "memory",
            "seconds": "time",
            "step_ms": "time of a step",
            "cache_mb": "cache",
        },
        left=1,
    ),
    "machine_limits": machine_limits,
    "multi30k": multi30k,
    "page_faults": fields_of(
        "page_faults",
        {
            "work": "command",
            "kept": "freed memory kept",
            "minor_faults": "page faults",
            "system_seconds": "system time, s",
            "user_seconds": "user time, s",
            "seconds": "wall time, s",
            "peak_mb": "peak MB",
        },
        left=2,
    ),
    "parsing": lambda: of_rows(rows_of("parsing"), left=1),
    "positions": lambda: by_length("positions"),
    "positions_short": lambda: by_length("positions_short"),
    "pretraining": fields_of(
        "pretraining",
        {
            "labels": "labelled excerpts",
            "pretrained": "pre-trained",
            "accuracy": "accuracy",
            "accuracy_deviation": "standard deviation",
            "f1_macro": "macro F1",
            "f1_macro_deviation": "standard deviation",
        },
        left=0,
    ),
    "profile_decode": lambda: profile("profile_decode"),
    "profile_train": lambda: profile("profile_train"),
    "published_scores": fields_of(
        "published_scores",
        {"outputs": "outputs", "score": "score", "published": "published", "ours": "ours"},
        left=2,
    ),
    "recurrent": lambda: by_length("recurrent"),
    "recurrent.speed": lambda: by_length("recurrent", "tokens_per_second"),
    "reduction": fields_of("reduction", FORMULAS, left=3),
    "regularization": fields_of("regularization", ABLATIONS, left=2),
    "remat": fields_of(
        "remat",
        {"remat": "`model.remat`", "memory_mb": "memory of updates, MB", "seconds": "s per update"},
    ),
    **{
        name: fields_of(
            name,
            {
                **{"run": "run", "between": "between sentences", "way": "translated"},
                **{"chrf": "chrF", "equal": "texts equal to those of single sentences"},
            },
            left=3,
        )
        for name in ("long_texts", "long_texts_news")
    },
    "long_sentences": fields_of(
        "long_sentences",
        {
            **{"tokens": "tokens", "sentences": "sentences", "chrf_1024": "whole"},
            **{"chrf_96": "96", "chrf_64": "64", "chrf_48": "48", "chrf_32": "32"},
        },
        left=1,
    ),
    "scaling": fields_of("scaling", FORMULAS, left=3),
    "scaling.trainings": lambda: of_rows(read("scaling")["trainings"], left=1),
    "sentence_ends": fields_of("sentence_ends", left=2),
    "text_forms": fields_of(
        "text_forms",
        {"form": "form of the text", "bleu_before": "without the rules", "bleu_now": "BLEU now"},
    ),
    "variants": fields_of(
        "variants",
        {
            "variant": "variant",
            "parameters": "parameters",
            "training_tokens_per_second": "training, tokens/s",
            "prediction_tokens_per_second": "prediction, tokens/s",
            "beam_tokens_per_second": "beam 4, tokens/s",
            "memory_mb": "memory of updates, MB",
            "cache_bytes_per_token": "cache, bytes per token",
        },
    ),
    "whole_run": fields_of(
        "whole_run",
        {"part": "part", "calls": "calls", "seconds": "seconds", "share": "share of the time"},
    ),
    "small_corpus.cased": lambda: score_table(CASED, first="training"),
    "small_corpus.lower_cased": lambda: score_table(LOWER_CASED, first="training"),
    **{
        f"experiments.{topic.replace(' ', '_')}.{name}": _experiments_of(topic, kept)
        for topic in dict.fromkeys(row["topic"] for row in rows_of("experiments"))
        for name, kept in (("kept", True), ("rejected", False))
    },
}
BLOCKS = {**blocks.BLOCKS, **with_sources(OWN, FOLDERS[1])}
