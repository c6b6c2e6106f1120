"""The tables and texts that are rendered from result files, by name."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from benchmarks.figures.rendering import Renderer, fields_of, rows_of, with_sources
from benchmarks.figures.scores import score_table, trainings
from benchmarks.figures.speeds import CELLS, MACHINES, TRAINED, cell_title, measured, speeds
from benchmarks.harness.results import FOLDERS, read
from benchmarks.harness.tables import markdown, of_rows


def decode(shape: str, name: str = "decode") -> str:
    """Target tokens per second of each system, and in brackets the ratio to CTranslate2."""
    return _cells(name, shape, lambda row: _speed(row, "ratio_to_ctranslate2"))


def decode_other_systems(shape: str) -> str:
    """Ratios to CTranslate2 of the systems that only the run of all systems had."""
    return _cells("decode_other_systems", shape, lambda row: f"{row['ratio_to_ctranslate2']:.2f}")


def train() -> str:
    """Target tokens per second of whole updates, and in brackets the ratio to the fastest other."""
    columns = (("train_base", "train_base_other_systems"), ("train_tiny",))
    tables = [
        {row["system"]: row for name in reversed(files) for row in rows_of(name)}
        for files in columns
    ]
    rows = [
        [title, *(_speed(rows.get(system), "ratio_to_fastest_other") for rows in tables)]
        for system, title in TRAINED.items()
    ]
    return markdown(["system", "base, 16 × 32 tokens", "tiny, 64 × 24 tokens"], rows)


def stranger(*names: str) -> str:
    """The classes of unusual input; each field has the values of all result files."""
    rows = [
        {"class": of_class[0]["class"]}
        | {
            name: [row[name] for row in of_class]
            for name in STRANGER
            if isinstance(of_class[0][name], float | int)
        }
        for of_class in zip(*map(rows_of, names), strict=True)
    ]
    return of_rows(rows, STRANGER, left=1)


def fine_tuning() -> str:
    """BLEU of each run, with a column for each test set."""
    return _bleu_by_set("fine_tuning")


def adapters() -> str:
    """BLEU of each run, with a column for each test set, and the size of a checkpoint."""
    sizes = {row["run"]: row["checkpoint_megabytes"] for row in rows_of("adapters")}
    return _bleu_by_set("adapters", {"checkpoint, MB": {x: f"{n:.2f}" for x, n in sizes.items()}})


def _bleu_by_set(name: str, more: Mapping[str, Mapping[str, str]] = MappingProxyType({})) -> str:
    """A table of a result file with a row for each run; `more` has further columns."""
    scores = {(row["run"], row["set"]): row["bleu"] for row in rows_of(name)}
    runs, sets = (list(dict.fromkeys(key[place] for key in scores)) for place in (0, 1))
    rows = [
        [
            run,
            *(f"{scores[run, test_set]:.2f}" for test_set in sets),
            *(by_run[run] for by_run in more.values()),
        ]
        for run in runs
    ]
    return markdown(["model", *sets, *more], rows)


STRANGER = {  # columns by field
    "class": "class",
    "chrf": "chrF",
    "ratio": "of plain chrF",
    "spans_kept": "spans kept",
    "loops": "loops",
    "empty": "empty",
}
SCORED = {  # by result file
    "multi30k": "Multi30k En→De, test_2016_flickr",
    "multi30k_fr": "Multi30k En→Fr, test_2016_flickr",
    "multi30k_cs": "Multi30k En→Cs, test_2016_flickr",
    "tatoeba": "Tatoeba En→De, 2,000 held-out sentences",
    "demo": "numbers and dates, 1,000 unseen pairs",
}
BY_PRETRAINED = {
    "multi30k_pretrained": "Multi30k En→De by the model in `pretrained/`",
    "multi30k_fr_pretrained": "Multi30k En→Fr by the model in `pretrained/`",
    "multi30k_lc_pretrained": "Multi30k En→De, lower-cased, by the model in `pretrained/`",
    "tatoeba_unusual": "Tatoeba En→De by the model in `pretrained/`, which knows unusual input",
    "tatoeba_newstest": "newstest2013 by this model",
    "tatoeba_de_en": "Tatoeba De→En by the model in `pretrained/`",
    "tatoeba_de_en_newstest": "newstest2013 De→En by this model",
}
LOWER_CASED = {
    "multi30k_lc": "Multi30k En→De, lower-cased, tokenised",
    "multi30k_lc_sampled": "the same, with generated pairs",
    "multi30k_best": "the same, by a chain of four training runs",
}
NEWS = "newstest2013, 3,000 sentences"
PRETRAINED = {  # by folder in pretrained/
    "multi30k-en-de": {"multi30k_pretrained": SCORED["multi30k"]},
    "multi30k-en-de-lc": {"multi30k_lc_pretrained": LOWER_CASED["multi30k_lc"]},
    "multi30k-en-fr": {"multi30k_fr_pretrained": SCORED["multi30k_fr"]},
    "tatoeba-en-de": {
        "tatoeba_unusual": SCORED["tatoeba"],
        "tatoeba_newstest": NEWS,
    },
    "tatoeba-de-en": {
        "tatoeba_de_en": "Tatoeba De→En, 2,000 held-out sentences",
        "tatoeba_de_en_newstest": NEWS,
    },
}


def preparation() -> str:
    """Time and memory by the number of pairs; a billion by the line through the rows."""
    result = read("data_prepare")
    rows = [
        [
            f"{row['pairs']:,}",
            row["how"],
            f"{row['seconds']:,.0f} s",
            f"{row['pairs_per_second']:,}",
            f"{row['peak_mb']:,}",
        ]
        for row in result["measurements"]
    ]
    hours = result["summary"]["hours_of_a_billion"]
    rows += [["a billion, by a line", how, f"{time:,.0f} h", "", ""] for how, time in hours.items()]
    return markdown(["pairs", "with", "time", "pairs/s", "peak MB"], rows)


def demo_output() -> str:
    """The lines that `make demo` prints from the scores to the first translation."""
    printed = read("demo")["printed"]
    first = next(n for n, line in enumerate(printed) if " sentences: " in line)
    last = next(n for n, line in enumerate(printed) if line.startswith('{"translation"'))
    return "\n".join(["```", *printed[first : last + 1], "```"])


def demo_response() -> str:
    """The answer of a server that holds the model of `make demo`."""
    answers = [
        json.dumps({key: row[key] for key in row if key != "text"}, ensure_ascii=False)
        for row in rows_of("demo")
    ]
    return "\n".join(
        ["```json", '{"predictions": [' + ",\n                 ".join(answers) + "]}", "```"]
    )


KERNEL_RESULTS = {"kernels_avx512": "AVX-512", "kernels_avx2": "AVX2"}


def kernel_pairs() -> str:
    """The ratio of the plain form's time to the tuned form's time, per instruction set."""
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
    """The ratio of the time with attention weights in the result to the time without them."""
    rows = [
        [work, *(f"{row['with_over_without']:.2f}" for row in ratios)]
        for (work,), ratios in _side_by_side("weights", ("work",)).items()
    ]
    return markdown(["work", *KERNEL_RESULTS.values()], rows)


def kernel_thresholds() -> str:
    """The side that each threshold chooses. 1.00 means that it is the fastest side."""
    rows = [
        [f"`{name}`", size, chosen, *(_over_fastest(row) for row in measured)]
        for (name, size, chosen), measured in _side_by_side(
            "measurements", ("threshold", "size", "chosen")
        ).items()
    ]
    return markdown(["threshold", "at", "chosen", *KERNEL_RESULTS.values()], rows, left=3)


def _side_by_side(entry: str, keys: Sequence[str]) -> dict[tuple, list[dict[str, Any]]]:
    """The rows of all results of kernels, by their keys; {} for a row that a result lacks."""
    results = [
        {
            tuple(row[key] for key in keys): row
            for part in (name.replace("kernels", "kernel_thresholds"), name)
            for row in read(part).get(entry, [])
        }
        for name in KERNEL_RESULTS
    ]
    return {key: [result.get(key, {}) for result in results] for key in results[0]}


def _over_fastest(row: dict[str, Any]) -> str:
    if not row:
        return "–"
    ratio = f"{row['chosen_over_fastest']:.2f}"
    return ratio if row["chosen"] == row["fastest"] else f"{ratio} ({row['fastest']})"


def _cells(name: str, shape: str, show: Callable[[dict[str, Any]], str]) -> str:
    """A table of systems and cells of a shape."""
    cells = {
        (row["system"], row["beam"], row["batch"]): row
        for row in rows_of(name)
        if row["shape"] == shape
    }
    header = [cell_title(*cell) for cell in CELLS]
    systems = dict.fromkeys(system for system, *_ in cells)
    rows = [
        [f"`{system}`", *(show(cells.get((system, *cell), {})) for cell in CELLS)]
        for system in systems
    ]
    return markdown(["system", *header], rows)


def _speed(row: dict[str, Any] | None, ratio: str) -> str:
    """Tokens per second and the ratio; either may be absent."""
    row = row or {}
    speed = f"{row['tokens_per_second']:,.0f}" if "tokens_per_second" in row else ""
    over = f"({row[ratio]:.2f})" if row.get(ratio) is not None else ""
    return f"{speed} {over}".strip() or "–"


def train_text() -> str:
    """The speed of each system on the batches of a text, and the seconds before it has it."""
    rows = [
        [
            TRAINED[row["system"]],
            _speed(row, "ratio_to_fastest_other"),
            f"{row['ready_seconds']:.0f}",
        ]
        for row in rows_of("train_text")
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
FORMS = {
    "system": "form",
    "folder_mb": "folder, MB",
    "sentences_per_second": "sentences/s",
    "alone_per_second": "one at a time, sentences/s",
    "first_pass_seconds": "s of the first pass, with start-up",
    "peak_mb": "peak memory, MB",
    "bleu": "BLEU",
}
STUDENT = {
    "system": "system",
    "sentences_per_second": "sentences/s",
    "ratio_to_ctranslate2": "to CTranslate2",
    "alone_per_second": "one at a time, sentences/s",
    "bleu": "BLEU",
}
TRAINING = {
    "system": "system",
    "tokens_per_second": "tokens/s",
    "ratio_to_fastest_other": "to the fastest other",
    "first_loss": "first loss",
    "last_loss": "last loss",
}
OWN: dict[str, Renderer] = {
    "data_inspection": fields_of(
        "data_inspection",
        {
            **{"step": "step", "pairs": "pairs", "seconds": "seconds"},
            **{"pairs_per_second": "pairs/s", "file_mb": "file, MB", "peak_mb": "peak MB"},
        },
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
    "data_prepare": preparation,
    "decode.base": lambda: decode("base"),
    "decode.tiny": lambda: decode("tiny"),
    "decode_avx2.base": lambda: decode("base", "decode_avx2"),
    "decode_avx2.tiny": lambda: decode("tiny", "decode_avx2"),
    "decode_int8.base": lambda: decode("base", "decode_int8"),
    "decode_int8.tiny": lambda: decode("tiny", "decode_int8"),
    "decode_litert": lambda: of_rows(
        [
            row | {"tokens_per_second": round(row["tokens_per_second"])}
            for row in rows_of("decode_litert")
        ],
        {
            **{"shape": "model", "system": "system", "beam": "beam"},
            **{"tokens_per_second": "target tokens/s", "ratio_to_ctranslate2": "to `ctranslate2`"},
        },
        left=2,
    ),
    "decode_opus.opus": lambda: decode("opus", "decode_opus"),
    "decode_tc_big.tc_big": lambda: decode("tc_big", "decode_tc_big"),
    "decode_lengths": fields_of(
        "decode_lengths",
        {"beam": "beam", "target_tokens": "target tokens", "median_seconds": "seconds per call"},
        left=0,
    ),
    "decode_other_systems.base": lambda: decode_other_systems("base"),
    "decode_other_systems.tiny": lambda: decode_other_systems("tiny"),
    "demo.output": demo_output,
    "demo.response": demo_response,
    "fine_tuning": fine_tuning,
    "forms": fields_of("forms", FORMS),
    "adapters": adapters,
    "kernels.pairs": kernel_pairs,
    "kernels.thresholds": kernel_thresholds,
    "kernels.weights": attention_weights,
    **{
        f"pretrained.{folder.replace('-', '_')}": partial(score_table, scores, columns=2)
        for folder, scores in PRETRAINED.items()
    },
    "real_text": fields_of("real_text", REAL_TEXT),
    "scores": lambda: score_table(SCORED),
    "scores.all": lambda: score_table(SCORED | BY_PRETRAINED | LOWER_CASED),
    "scores.trainings": lambda: trainings([*SCORED, *LOWER_CASED]),
    "train_base_bfloat16": fields_of("train_base_bfloat16", TRAINING),
    "start": fields_of(
        "start",
        {"process": "process", "sentences": "sentences", "seconds": "s", "peak_mb": "peak MB"},
    ),
    "student": fields_of("student_multi30k", STUDENT),
    "student_tatoeba": fields_of("student_tatoeba", STUDENT),
    "stranger": partial(stranger, "stranger_before", "stranger_off", "stranger"),
    "stranger_de_en": partial(stranger, "stranger_de_en_off", "stranger_de_en"),
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
    **{f"speed.{name}": partial(speeds, machine) for name, machine in MACHINES.items()},
    **{f"speed.{name}.measured": partial(measured, machine) for name, machine in MACHINES.items()},
    "train": train,
    "train_text": train_text,
}
BLOCKS = with_sources(OWN, FOLDERS[0])
