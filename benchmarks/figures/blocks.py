"""The tables and texts that are rendered from result files, by name."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.figures.values import KEY_FIELDS, machine, place_of
from benchmarks.harness.results import read, result_names
from benchmarks.harness.tables import formatted, markdown, of_rows

Renderer = Callable[[], str]

CELLS = ((1, 1), (4, 1), (1, 32), (4, 32))  # beam and batch
TRAINED = {
    "tf_transformer": "this project",
    "tf_transformer_xla": "this project, `--train.jit_compile true`",
    "keras_xla": "Keras' layers, with XLA",
    "keras": "Keras' layers",
    "keras_hub_xla": "KerasHub, with XLA",
    "keras_hub": "KerasHub",
    "flax": "Flax",
    "torch_compile": "torch, compiled",
    "torch": "torch",
    "marian": "Hugging Face Marian",
}


def decode(shape: str, name: str = "decode") -> str:
    """Target tokens per second of each system, and in brackets the ratio to CTranslate2."""
    return _cells(name, shape, lambda row: _speed(row, "ratio_to_ctranslate2"))


def decode_other_systems(shape: str) -> str:
    """Ratios to CTranslate2 of the systems that only the run of all systems had."""
    return _cells("decode_other_systems", shape, lambda row: f"{row['ratio_to_ctranslate2']:.2f}")


def train() -> str:
    """Target tokens per second of whole updates, and in brackets the ratio to the fastest other."""
    columns = (("train_base", "train_base_other_systems"), ("train_tiny",))
    found = [
        {row["system"]: row for name in reversed(files) for row in _rows(name)} for files in columns
    ]
    rows = [
        [title, *(_speed(rows.get(system), "ratio_to_fastest_other") for rows in found)]
        for system, title in TRAINED.items()
    ]
    return markdown(["system", "base, 16 × 32 tokens", "tiny, 64 × 24 tokens"], rows)


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
        for row in _rows("multi30k")
    ]
    return markdown(header, rows, left=3)


SCORED = {  # by result file
    "multi30k": "Multi30k En→De, test_2016_flickr",
    "multi30k_large": "the same, larger model",
    "multi30k_lc": "Multi30k En→De, lower-cased and tokenised",
    "multi30k_lc_sampled": "the same, with generated pairs (last of six trainings)",
    "multi30k_fr": "Multi30k En→Fr, test_2016_flickr",
    "multi30k_cs": "Multi30k En→Cs, test_2016_flickr",
    "tatoeba": "Tatoeba En→De, 2,000 held-out sentences",
}
PRETRAINED = {"tatoeba": SCORED["tatoeba"], "tatoeba_newstest": "newstest2013, 3,000 sentences"}
SCORE_HEADER = ["corpus", "score", "chrF", "seeds", "trained", "machine", "config"]


def scores() -> str:
    """The best scores on each corpus, with their training."""
    demo = read("demo")
    found = demo["summary"]
    corpus = "generated numbers and dates En→De, 1,000 unseen pairs"
    exact = f"exact match {found['exact_match']:.1%}"
    seeds = _seeds("demo", lambda result: result["summary"]["exact_match"], "{:.1%}")
    rows = [*map(_score, SCORED), [corpus, exact, *_training(demo, found["chrf"], seeds)]]
    return markdown(SCORE_HEADER, rows, left=len(SCORE_HEADER))


def pretrained_scores() -> str:
    """The scores of the model in pretrained/, on sentences like its own and on news."""
    rows = [_score(name)[:3] for name in PRETRAINED]
    return markdown(SCORE_HEADER[:3], rows, left=3)


def _score(name: str) -> list[str]:
    """The row of a result file of `SCORED`."""
    result = read(name)
    best = result["measurements"][0]
    signature = result["summary"]["signature"].replace("|", r"\|")
    score = f"BLEU **{best['bleu']:.2f}** `{signature}`"
    seeds = _seeds(name, lambda result: result["measurements"][0]["bleu"], "{:.2f}")
    return [(SCORED | PRETRAINED)[name], score, *_training(result, best["chrf"], seeds)]


def _training(result: dict[str, Any], chrf: float, seeds: str) -> list[str]:
    summary = result["summary"]
    duration = formatted("training_seconds", summary["training_seconds"])
    trained = f"{summary['updates']:,} updates in {duration}"
    return [f"{chrf:.2f}", seeds, trained, machine(result), f"`{summary['config']}`"]


def _seeds(name: str, score: Callable[[dict[str, Any]], float], form: str) -> str:
    """The number of trainings that differ in their seed, and the range of their scores."""
    names = [name, *(each for each in result_names() if each.startswith(f"{name}_seed_"))]
    if len(names) < 2:
        return "1"
    found = [score(read(each)) for each in names]
    return f"{len(found)}: {form.format(min(found))} to {form.format(max(found))}"


def demo_output() -> str:
    """The lines that `make demo` prints from the scores to the first translation."""
    printed = read("demo")["printed"]
    first = next(n for n, line in enumerate(printed) if " sentences: " in line)
    last = next(n for n, line in enumerate(printed) if line.startswith('{"translation"'))
    return "\n".join(["```", *printed[first : last + 1], "```"])


def demo_response() -> str:
    """The answer of a server that holds the model of `make demo`."""
    answers = [
        json.dumps(
            {key: row[key] for key in ("translation", "score", "truncated")}, ensure_ascii=False
        )
        for row in _rows("demo")
    ]
    return "\n".join(
        ["```json", '{"predictions": [' + ",\n                 ".join(answers) + "]}", "```"]
    )


def fields_of(name: str, columns: dict[str, str], left: int = 1) -> Renderer:
    """A renderer of the rows of a result file.

    Args:
        name: of the file.
        columns: fields, with the header of each.
        left: columns that are aligned left.
    """
    return lambda: of_rows(_rows(name), columns, left)


def profile(name: str) -> str:
    """Shares of time, a row for each part."""
    rows = _rows(name)
    header = list(rows[0])
    return markdown(
        ["", *header[1:]],
        [[row["part"], *(f"{row[column]:.0%}" for column in header[1:])] for row in rows],
    )


KERNEL_RESULTS = {"kernels_avx512": "AVX-512", "kernels_avx2": "AVX2"}


def kernel_pairs() -> str:
    """The time of the plain form over that of the tuned form, per instruction set."""
    rows = [
        [
            f"`{name}`" + ", compiled" * compiled,
            work,
            *(f"{pair['plain_over_tuned']:.2f}" for pair in pairs),
        ]
        for (name, work, compiled), pairs in _side_by_side(
            "pairs", ("kernel", "work", "compiled")
        ).items()
    ]
    return markdown(["kernel", "work", *KERNEL_RESULTS.values()], rows, left=2)


def attention_weights() -> str:
    """The time of results with attention weights over that without them."""
    rows = [
        [work, *(f"{row['with_over_without']:.2f}" for row in found)]
        for (work,), found in _side_by_side("weights", ("work",)).items()
    ]
    return markdown(["work", *KERNEL_RESULTS.values()], rows)


def kernel_thresholds() -> str:
    """The side that each threshold chooses; its time over that of the fastest side."""
    rows = [
        [f"`{name}`", size, chosen, *(_over_fastest(row) for row in found)]
        for (name, size, chosen), found in _side_by_side(
            "measurements", ("threshold", "size", "chosen")
        ).items()
    ]
    return markdown(["threshold", "at", "chosen", *KERNEL_RESULTS.values()], rows, left=3)


def _side_by_side(entry: str, keys: Sequence[str]) -> dict[tuple, list[dict[str, Any]]]:
    """The rows of all results of kernels, by their keys; {} where a result lacks one."""
    results = [
        {tuple(row[key] for key in keys): row for row in read(name)[entry]}
        for name in KERNEL_RESULTS
    ]
    return {key: [result.get(key, {}) for result in results] for key in results[0]}


def _over_fastest(row: dict[str, Any]) -> str:
    if not row:
        return "–"
    ratio = f"{row['chosen_over_fastest']:.2f}"
    return ratio if row["chosen"] == row["fastest"] else f"{ratio} ({row['fastest']})"


def by_length(name: str, field: str = "bleu") -> str:
    """A number of each model, in a column for each length of sources."""
    rows = _rows(name)
    columns = list(dict.fromkeys(row["source_tokens"] for row in rows))
    found = {(row["model"], row["source_tokens"]): row[field] for row in rows}
    models = dict.fromkeys(row["model"] for row in rows)
    return markdown(
        ["model", *columns],
        [
            [f"`{each}`", *(formatted(field, found.get((each, column))) for column in columns)]
            for each in models
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
        for row in _rows("machine_limits")
    ]
    return markdown(["", "speed", "unit"], rows)


def experiments(topic: str, kept: bool) -> str:
    """The experiments of a topic that were kept, or those that were not."""
    rows = [
        [row["change"], row["workload"], _effect(row), row["note"]]
        for row in _rows("experiments")
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


def source(name: str) -> str:
    """How a result was measured: machine, date, versions, command."""
    found = read(name)
    packages = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
    note = f" {found['note']}" if "note" in found else ""
    where = f"Measured on {found['date']} on {machine(found)}, {found['machine']['memory']}"
    return f"{where}, with {packages}.{note}\n\n```\n{found['command']}\n```"


BLOCKS: dict[str, Renderer] = {
    "agreement": fields_of(
        "agreement", {"form": "numbers", "different": "translations that differ", "bleu": "BLEU"}
    ),
    "data_memory": fields_of(
        "data_memory",
        {
            "pairs": "pairs",
            "shards": "shards",
            "files_mb": "files, MB",
            "tokenisation_seconds": "tokenisation, s",
            "batches": "batches",
            "padding": "padding",
            "target_tokens_per_second": "target tokens/s",
            "peak_mb_before": "peak MB before",
            "peak_mb": "peak MB",
        },
        left=0,
    ),
    "decode.base": lambda: decode("base"),
    "decode.tiny": lambda: decode("tiny"),
    "alignments": fields_of(
        "alignments",
        {
            **{"layer": "decoder layer", "pairs": "pairs", "error_rate": "alignment error rate"},
            **{"precision": "precision", "recall": "recall"},
        },
    ),
    "decode_lengths": fields_of(
        "decode_lengths",
        {"beam": "beam", "target_tokens": "target tokens", "median_seconds": "seconds per call"},
        left=0,
    ),
    "decode_other_systems.base": lambda: decode_other_systems("base"),
    "decode_other_systems.tiny": lambda: decode_other_systems("tiny"),
    "demo.output": demo_output,
    "demo.response": demo_response,
    "heads": lambda: of_rows(
        read("heads")["pruned"],
        {"removed": "heads removed", "kept": "heads kept", "bleu": "BLEU"},
    ),
    "kernels.pairs": kernel_pairs,
    "kernels.thresholds": kernel_thresholds,
    "kernels.weights": attention_weights,
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
    "remat": fields_of(
        "remat",
        {"remat": "`model.remat`", "memory_mb": "memory of updates, MB", "seconds": "s per update"},
    ),
    "pretrained_scores": pretrained_scores,
    "scores": scores,
    "serving_load": fields_of(
        "serving_load",
        {
            "clients": "clients",
            "sentences_per_second": "sentences/s",
            "p50_ms": "p50 ms",
            "p95_ms": "p95 ms",
            "p99_ms": "p99 ms",
            "wrong": "wrong",
            "failed": "failed",
            "memory_mb": "memory in MB, at five moments",
        },
        left=0,
    ),
    "text_forms": fields_of(
        "text_forms",
        {"form": "form of the text", "bleu_before": "without the rules", "bleu_now": "BLEU now"},
    ),
    "train": train,
}


def _cells(name: str, shape: str, show: Callable[[dict[str, Any]], str]) -> str:
    """A table of systems and cells of a shape."""
    found = {
        (row["system"], row["beam"], row["batch"]): row
        for row in _rows(name)
        if row["shape"] == shape
    }
    header = [
        f"{'greedy' if beam == 1 else f'beam {beam}'}, batch {batch}" for beam, batch in CELLS
    ]
    systems = dict.fromkeys(system for system, *_ in found)
    rows = [
        [f"`{system}`", *(show(found.get((system, *cell), {})) for cell in CELLS)]
        for system in systems
    ]
    return markdown(["system", *header], rows)


def _speed(row: dict[str, Any] | None, ratio: str) -> str:
    """Tokens per second and the ratio; either may be absent."""
    row = row or {}
    speed = f"{row['tokens_per_second']:,.0f}" if "tokens_per_second" in row else ""
    over = f"({row[ratio]:.2f})" if row.get(ratio) is not None else ""
    return f"{speed} {over}".strip() or "–"


def _rows(name: str) -> Sequence[dict[str, Any]]:
    return read(name)["measurements"]


def _source_of(name: str) -> Renderer:
    return lambda: source(name)


def names() -> str:
    """All names, for benchmarks/README.md."""
    rows = [[f"`{name}`", *_described(name)] for name in sorted(result_names())]
    return markdown(["result file", "blocks", "values after `NAME.`"], rows, left=3)


def _described(name: str) -> list[str]:
    """The blocks of a result file, and the keys of its values."""
    found = read(name)
    blocks = [block for block in sorted(BLOCKS) if block.split(".")[0] == name]
    values = list(found.get("summary", {}))
    if name in KEY_FIELDS:
        row = found["measurements"][0]
        fields = [field for field in row if field not in KEY_FIELDS[name]]
        values.append(f"{place_of(name, row)}.({'|'.join(fields)})".replace("|", r"\|"))
    return [", ".join(f"`{each}`" for each in each_of) or "–" for each_of in (blocks, values)]


def trained_shapes(name: str) -> str:
    """The speed of each system for base and tiny, from one result file."""
    found = {(row["system"], row["shape"]): row for row in _rows(name)}
    rows = [
        [
            TRAINED[system],
            *(
                _speed(found.get((system, shape)), "ratio_to_fastest_other")
                for shape in ("base", "tiny")
            ),
        ]
        for system in dict.fromkeys(system for system, _ in found)
    ]
    return markdown(["system", "base, 16 × 32 tokens", "tiny, 64 × 24 tokens"], rows)


def train_text() -> str:
    """The speed of each system on the batches of a text, and the seconds before it has it."""
    rows = [
        [
            TRAINED[row["system"]],
            _speed(row, "ratio_to_fastest_other"),
            f"{row['ready_seconds']:.0f}",
        ]
        for row in _rows("train_text")
    ]
    return markdown(["system", "tokens/s", "s to warm up"], rows)


REAL_TEXT = {
    "system": "system",
    "sentences_per_second": "sentences/s",
    "ratio_to_ctranslate2": "to CTranslate2",
    "first_pass_seconds": "s of the first pass, with start-up",
    "peak_mb": "peak memory, MB",
    "minor_faults": "minor page faults",
    "system_seconds": "system time, s",
    "bleu": "BLEU",
}
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

# Results that need a longer measurement than most; without their file there is no block.
_LONG: dict[str, Renderer] = {
    "ablations": fields_of("ablations", ABLATIONS, left=2),
    "decode_intel.base": lambda: decode("base", "decode_intel"),
    "decode_intel.tiny": lambda: decode("tiny", "decode_intel"),
    "decode_avx2.base": lambda: decode("base", "decode_avx2"),
    "decode_avx2.tiny": lambda: decode("tiny", "decode_avx2"),
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
    "language_models": lambda: of_rows(_rows("language_models"), left=1),
    "parsing": lambda: of_rows(_rows("parsing"), left=1),
    "positions": lambda: by_length("positions"),
    "positions_short": lambda: by_length("positions_short"),
    "published_scores": fields_of(
        "published_scores",
        {"outputs": "outputs", "score": "score", "published": "published", "ours": "ours"},
        left=2,
    ),
    "forced_choices": fields_of(
        "forced_choices",
        {"choice": "choice", "bleu": "BLEU", "length_ratio": "length of the translations"},
    ),
    "real_text": fields_of("real_text", REAL_TEXT),
    "real_text_avx2": fields_of("real_text_avx2", REAL_TEXT),
    "real_text_base": fields_of("real_text_base", REAL_TEXT),
    "real_text_intel": fields_of("real_text_intel", REAL_TEXT),
    "recurrent": lambda: by_length("recurrent"),
    "recurrent.speed": lambda: by_length("recurrent", "tokens_per_second"),
    "regularization": fields_of("regularization", ABLATIONS, left=2),
    "reduction": fields_of("reduction", FORMULAS, left=3),
    "scaling": fields_of("scaling", FORMULAS, left=3),
    "scaling.trainings": lambda: of_rows(read("scaling")["trainings"], left=1),
    "train_avx2": lambda: trained_shapes("train_avx2"),
    "train_intel": lambda: trained_shapes("train_intel"),
    "train_text": train_text,
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
}
BLOCKS |= {name: block for name, block in _LONG.items() if name.split(".")[0] in result_names()}
BLOCKS |= {f"{name}.source": _source_of(name) for name in result_names()}
BLOCKS |= {
    f"experiments.{topic.replace(' ', '_')}.{name}": _experiments_of(topic, kept)
    for topic in dict.fromkeys(row["topic"] for row in _rows("experiments"))
    for name, kept in (("kept", True), ("rejected", False))
}
BLOCKS["names"] = names
