"""benchmarks/figures/speeds.py: tables of speed, by hand."""

from benchmarks.figures import speeds


def decoded(system, speed, beam=1, batch=1):
    """The rows of a system for both shapes; tiny is ten times as fast."""
    cell = {"system": system, "beam": beam, "batch": batch}
    return [
        cell | {"shape": "base", "tokens_per_second": speed},
        cell | {"shape": "tiny", "tokens_per_second": 10 * speed},
    ]


def test_both_forms_stand_beside_the_fastest_other_system(monkeypatch):
    tables = {"decode": [], "train": [], "text": []}
    for cell in speeds.CELLS:
        for system, speed in (("savedmodel", 30), ("savedmodel_xla", 60), ("ctranslate2", 40)):
            tables["decode"] += decoded(system, speed, *cell)
    for shape in ("base", "tiny"):
        for system, speed in (
            *(("tf_transformer", 1200), ("tf_transformer_xla", 600)),
            *(("torch", 800), ("keras", 1000)),
        ):
            row = {"system": system, "shape": shape, "tokens_per_second": speed}
            tables["train"].append(row)
        tables["train"].append({"system": "flax", "shape": shape})  # a ratio of another run only
    for system, speed in (("translate.py", 9), ("savedmodel", 4), ("savedmodel_xla", 2)):
        tables["text"].append({"system": system, "sentences_per_second": speed})
    for system, speed in (("ctranslate2", 5), ("ctranslate2_file", 8)):
        tables["text"].append({"system": system, "sentences_per_second": speed})
    monkeypatch.setattr(speeds, "rows_of", tables.__getitem__)
    lines = speeds.speeds(speeds.Machine("decode", ("train",), "text")).splitlines()
    assert len(lines) == 2 + 8 + 2 + 1
    assert (
        "| translation, base, greedy, batch 1 | 30 (0.75) | 60 (1.50) | 40 CTranslate2 |" in lines
    )
    assert (
        "| translation, tiny, beam 4, batch 32 | 300 (0.75) | 600 (1.50) | 400 CTranslate2 |"
        in lines
    )
    assert "| training, tiny | 1,200 (1.20) | 600 (0.60) | 1,000 Keras' layers |" in lines
    assert (
        lines[-1] == "| captions, sentences/s | 4 (0.50) | 2 (0.25) | 8 CTranslate2, whole file |"
    )


def test_the_results_of_a_machine_are_named_once_with_all_commands():
    text = speeds.measured(speeds.MACHINES["amd_avx512"])
    assert text.startswith("Measured on 2026-11-29 on 2 cores of an AMD EPYC")
    assert text.count("python -m benchmarks.") == 4
    assert text.count("ctranslate2 4.8.5") == 1
