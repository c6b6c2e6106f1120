"""benchmarks/translations: comparisons of translations, by hand."""

import json
import pathlib
import re
from types import SimpleNamespace

import pytest
import sacrebleu

from benchmarks.figures import blocks
from benchmarks.figures import scores as tables
from benchmarks.translations import demo, scores
from benchmarks.translations.compare import bleu, compare, first_lines
from tf_transformer.inference.translator import Translation


def test_translations_that_differ_are_counted_and_scores_of_the_others_compared():
    ours = [Translation("a", -1.0), Translation("b", -2.0), Translation("c", -3.0)]
    theirs = [Translation("a", -1.5), Translation("B", -9.0), Translation("c", -3.25)]
    assert compare(ours, theirs) == (1, 0.5)
    assert compare(ours[:1], theirs[1:2]) == (1, 0.0)


def test_lines_are_read_as_translate_reads_them(tmp_path):
    (tmp_path / "x").write_bytes(b"one\n\xff\nthree\n")
    assert first_lines(str(tmp_path / "x"), 2) == ["one", "�"]


def test_without_references_there_is_no_bleu():
    assert bleu(["a b c d"], []) is None
    assert bleu(["a b c d"], ["a b c d"]) == pytest.approx(100)


PRINTED = """.venv/bin/python train.py --config configs/demo.yaml
training: 40,000 pairs
model: 986,624 parameters, vocabulary 500
trained 1,422 updates, 1.3 minutes
1,000 sentences: exact match 99.8%
{"bleu": 0.0, "signature": "s", "chrf": 99.99, "exact_match": 99.8, "sentences": 1000}
rm -rf served/demo/1
{"translation": "einundzwanzig", "score": -0.4, "truncated": false}
"""
PROGRESS = "".join(f"{n * 10}%, {n}/10, 23.65 updates/s\n" for n in range(1, 11))


def test_the_output_of_the_demo_is_kept_without_its_commands():
    lines = demo.readable(PROGRESS, PRINTED)
    assert lines == [
        "training: 40,000 pairs",
        "model: 986,624 parameters, vocabulary 500",
        "90%, 9/10, 23.65 updates/s",
        "...",
        "trained 1,422 updates, 1.3 minutes",
        "1,000 sentences: exact match 99.8%",
        '{"translation": "einundzwanzig", "score": -0.4, "truncated": false}',
    ]
    found = demo.scores(PRINTED, "\n".join(lines))
    assert found["exact_match"] == pytest.approx(0.998)
    assert (found["updates"], found["training_seconds"]) == (1422, 78)
    assert found["parameters"] == 986_624


def test_the_translations_of_the_demo_stand_beside_their_sources():
    makefile = (demo.ROOT / "Makefile").read_text("utf-8")
    (row,) = demo.translations(PRINTED, makefile)
    assert (row["text"], row["translation"]) == ("twenty-one", "einundzwanzig")


def test_scores_of_a_run_and_of_other_seeds_are_a_row_of_the_page(run, tmp_path, monkeypatch):
    files = {name: str(tmp_path / name) for name in ("source", "reference")}
    for file in files.values():
        pathlib.Path(file).write_text("one\ntwo\n", "utf-8")
    found = iter([40.0, 39.5])  # of float32 and of bfloat16
    metric = SimpleNamespace(
        corpus_score=lambda *_: SimpleNamespace(score=next(found)), get_signature=lambda: "s"
    )
    monkeypatch.setattr(sacrebleu, "BLEU", lambda **_: metric)
    output = tmp_path / "scores.json"
    options = {"averages": [1], "beam_sizes": [1], "output": str(output)}
    training = {"training_seconds": 60.0, "train_config": "configs/c.yaml"}
    scores.main(str(run), **files, **options, **training)
    result = json.loads(output.read_text("utf-8"))
    assert [row["bleu"] for row in result["measurements"]] == [40, 39.5]
    other_seeds = [{**result, "measurements": [{"bleu": bleu}]} for bleu in (41.25, 39.75)]
    read = {name: blocks.read(name) for name in blocks.SCORED} | {"tatoeba": result}
    read |= {f"tatoeba_seed_{n}": other for n, other in enumerate(other_seeds, 2)}
    monkeypatch.setattr(tables, "read", read.__getitem__)
    monkeypatch.setattr(tables, "result_names", lambda: [*read])
    folder = tables.ROOT / "benchmarks" / "results"
    monkeypatch.setattr(tables, "path_of", lambda name: folder / f"{name}.json")
    table = tables.score_table(blocks.SCORED)
    (row,) = (line for line in table.splitlines() if "configs/c.yaml" in line)
    assert "| BLEU **40.00** |" in row
    assert "| 41.25, 39.75 | 1 min 0 s |" in row
    assert table.replace("\n", " ").endswith("`s`: Tatoeba En→De, 2,000 held-out sentences.")
    read["demo_seed_2"] = {
        **read["demo"],
        "summary": read["demo"]["summary"] | {"exact_match": 0.9},
    }
    assert "| 90.0% |" in tables.score_table(blocks.SCORED)
    rows = tables.trainings(["tatoeba"]).splitlines()[2:]
    pattern = r"\| `benchmarks/results/(\w+)\.json` \| ([\d.]+) "
    names = [re.match(pattern, row).groups() for row in rows]
    assert names == [("tatoeba", "40.00"), ("tatoeba_seed_2", "41.25"), ("tatoeba_seed_3", "39.75")]
