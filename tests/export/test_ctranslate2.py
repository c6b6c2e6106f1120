"""CTranslate2 folders: the same model, the same search, and clear errors for the rest."""

import importlib
import importlib.util
import json
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
from untrained_translator import untrained

from tf_transformer.config import Config, DecodeConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.export import check_ctranslate2, standalone, to_ctranslate2
from tf_transformer.inference.translator import Translator
from tf_transformer.run.folder import RunFolder
from tf_transformer.text.tokenizer import Tokenizer

TEXTS = ["", "one", "two hundred and three", "  ", "three three three", "né 日本\tx", "seven " * 30]
VARIANTS = {
    "paper": {},
    "pre_norm": {"norm_first": True},
    "attention_bias": {"attention_bias": True},
    "learned": {"position": "learned", "max_length": 50},
    "target_tied": {"tie_embeddings": "target"},
    "untied": {"tie_embeddings": "none"},
    "narrow_heads": {"key_dim": 6, "value_dim": 6},
    "odd_heads": {"key_dim": 5, "value_dim": 5, "num_heads": 3, "d_model": 14},
    "deep_encoder": {"num_encoder_layers": 3, "num_decoder_layers": 1},
    "wide_encoder": {
        **{"encoder_d_model": 24, "encoder_d_ff": 40, "encoder_num_heads": 4},
        **{"tie_embeddings": "target"},
    },
    "rotary, gelu": {"position": "rotary", "activation": "gelu"},
    "relative, swiglu": {
        **{"position": "relative", "max_relative_distance": 3, "activation": "swiglu"},
    },
    "t5, rms_norm": {"position": "t5", "normalization": "rms_norm", "norm_first": True},
    "none, grouped queries": {"position": "none", "num_heads": 4, "num_key_value_heads": 2},
    "all": {
        **{"norm_first": True, "attention_bias": True, "position": "learned", "max_length": 50},
        **{"tie_embeddings": "none", "key_dim": 6, "value_dim": 6},
    },
}


@pytest.fixture(scope="module")
def tokenizer():
    lines = ["one two three four five six seven", "hundred and twenty thousand"]
    return Tokenizer.train(lines * 3, vocabulary_size=300)


@pytest.fixture(scope="module")
def plain(tokenizer):
    """A translator with default options; its graphs are traced once."""
    return untrained(tokenizer)


@pytest.fixture
def loaded():
    """Loads a folder; skips the test if CTranslate2 is not installed."""
    pytest.importorskip("ctranslate2", reason="needs ctranslate2: pip install ctranslate2")
    from tf_transformer.export.run_in_ctranslate2 import Model

    return lambda folder: Model(str(folder), threads=1)


IN_ALL = ("pre_norm", "attention_bias", "learned", "untied", "narrow_heads")
"""the options of the variant `all`, one by one"""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in IN_ALL else ()) for name in VARIANTS],
)
def test_scores_of_given_translations_equal_the_models(name, tokenizer, loaded, tmp_path):
    """The oracle is this project's model; the last text exceeds the longest source."""
    translator = untrained(tokenizer, num_layers=2, **VARIANTS[name])
    to_ctranslate2.write(translator, tmp_path, "float32")
    model = loaded(tmp_path)
    texts, given = [*TEXTS, "", " "], [*TEXTS[1:], "two two", "", "  "]
    expected = [(pair.score, pair.log_probability) for pair in translator.score(texts, given)]
    np.testing.assert_allclose(model.score(texts, given), expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("layer", [0, -1])
def test_its_attention_is_that_of_the_head_that_aligns(tokenizer, loaded, tmp_path, layer):
    options = {"alignment_layer": layer, "alignment_head": 0}
    translator = untrained(tokenizer, options, num_layers=2)
    to_ctranslate2.write(translator, tmp_path, "float32")
    model = loaded(tmp_path)
    sources = [model.pieces(model.texts.read("one two").ids)]
    options = {"return_attention": True, "max_decoding_length": 8}
    (result,) = model.translator.translate_batch(sources, **options)
    first = result.attention[0][0]  # of the first token, which sees the source alone
    (alignment,) = translator.align(["one two"], ["two"])
    np.testing.assert_allclose(first, alignment.weights[0, : len(first)], atol=1e-4)


@pytest.mark.parametrize(("distinct", "expected"), [(True, 2), (False, 3)])
def test_of_equal_texts_the_best_is_kept(
    tokenizer, loaded, tmp_path, monkeypatch, distinct, expected
):
    options = {"beam_size": 3, "num_hypotheses": 3, "distinct": distinct}
    to_ctranslate2.write(untrained(tokenizer, options), tmp_path, "float32")
    hypotheses = [["▁", "t", "</s>"], ["▁", "</s>"], ["▁t", "</s>"]]
    beam = mock.Mock(hypotheses=hypotheses, scores=[-1.0, -1.5, -3.0])
    model = loaded(tmp_path)
    monkeypatch.setattr(model, "beams", lambda sources: [beam])
    (found,) = model.n_best(["one"])
    assert len(found) == expected
    assert found[0] == max(found, key=lambda each: each.score)
    assert {each.text for each in found} == {"t", ""}


@pytest.mark.parametrize(
    ("decode", "model"),
    [
        ({"beam_size": 1}, {"norm_first": True}),
        ({"beam_size": 3, "length_penalty": 0.0, "max_length": 5}, {}),
        ({"beam_size": 4, "length_penalty": 2.0, "max_length_ratio": 0.5}, VARIANTS["all"]),
        ({}, VARIANTS["rotary, gelu"] | {"num_heads": 4, "num_key_value_heads": 2}),
    ],
    ids=["greedy", "without penalty", "beam", "rotary"],
)
def test_the_search_gives_the_same_translations_and_scores(
    decode, model, tokenizer, loaded, tmp_path
):
    translator = untrained(tokenizer, decode, **model)
    to_ctranslate2.write(translator, tmp_path, "float32")
    found, expected = loaded(tmp_path)(TEXTS), translator(TEXTS)
    assert [row.text for row in found] == [each.text for each in expected]
    scores = [row.score for row in found], [each.score for each in expected]
    np.testing.assert_allclose(*scores, atol=1e-4, rtol=1e-5)


def test_several_sentences_and_punctuation_are_read_as_by_the_project(tokenizer, loaded, tmp_path):
    """A long sentence is divided, too, by the length of the training's lines."""
    options = {"split": "sentences", "punctuation": "opus", "split_language": "en"}
    translator = untrained(tokenizer, options | {"trained_source_length": 12})
    to_ctranslate2.write(translator, tmp_path, "float32")
    model = loaded(tmp_path)
    texts = ["One. „Two“ –\n\nMr. Three!", "seven, six, five " * 9, " ", "One? 二。三"]
    assert len(model.texts.parts(texts[0])) == 3
    found, expected = model(texts), translator(texts)
    assert [row.text for row in found] == [each.text for each in expected]
    scores = [row.score for row in found], [each.score for each in expected]
    np.testing.assert_allclose(*scores, atol=1e-4, rtol=1e-5)


def test_a_rule_of_early_stopping_that_ctranslate2_lacks_is_named():
    assert to_ctranslate2.notes(DecodeConfig(beam_size=4)) == []
    assert to_ctranslate2.notes(DecodeConfig(beam_size=1, early_stopping=False)) == []
    (note,) = to_ctranslate2.notes(DecodeConfig(beam_size=4, early_stopping=False))
    assert "--early_stopping true" in note


def test_text_in_capitals_is_translated_as_by_the_project(plain, loaded, tmp_path):
    translator = Translator(plain.model, plain.codec, plain.config, lower_capitals=True)
    to_ctranslate2.write(translator, tmp_path, "float32")
    model, texts = (
        loaded(tmp_path),
        ["TWO HUNDRED", "Two", "TWO", "Two Hundred And One", " EU", "SIX!"],
    )
    for found, expected in (
        (model(texts), translator(texts)),
        (model.score(texts, texts[::-1]), translator.score(texts, texts[::-1])),
    ):
        scores = ([each.score for each in rows] for rows in (found, expected))
        np.testing.assert_allclose(*scores, atol=1e-4, rtol=1e-5)
    translations = [each.text for each in model(texts)]
    assert translations == [each.text for each in translator(texts)]
    assert [text in translations for text in texts] == [False, False, True, False, True, False]


PARTS_OF_CHARACTERS = tuple(f"<0x{byte:02X}>" for byte in range(128, 256))


@pytest.mark.parametrize(
    ("excluding", "end"),
    [
        ({"min_length": 9, "excluded_tokens": PARTS_OF_CHARACTERS}, 2.0),
        pytest.param({"no_repeat_ngram_size": 1}, 0.0, marks=pytest.mark.slow),
        ({"excluded_tokens": tuple(f"<0x{byte:02X}>" for byte in range(256))}, 0.0),
    ],
    ids=["short", "repeated", "excluded"],
)
def test_excluded_tokens_give_the_same_greedy_translations(
    excluding, end, tokenizer, loaded, tmp_path
):
    """Scores, and therefore beams, differ: CTranslate2 normalises after the exclusion."""
    free = [each.text for each in untrained(tokenizer, {"beam_size": 1}, end)(TEXTS)]
    translator = untrained(tokenizer, {"beam_size": 1} | excluding, end)
    to_ctranslate2.write(translator, tmp_path, "float32")
    found = [each.text for each in loaded(tmp_path)(TEXTS)]
    assert found == [each.text for each in translator(TEXTS)]
    assert found != free


@pytest.mark.parametrize(
    ("quantization", "bytes_per_weight", "tolerance"),
    [("bfloat16", 2, 0.1), ("float16", 2, 0.02), ("int8", 1, 0.5), ("int8_float16", 1, 0.5)],
)
def test_quantized_weights_give_nearly_the_same_scores(
    quantization, bytes_per_weight, tolerance, plain, loaded, tmp_path
):
    to_ctranslate2.write(plain, tmp_path / "float32", "float32")
    to_ctranslate2.write(plain, tmp_path / "small", quantization)
    full, small = ((tmp_path / name / "model.bin").stat().st_size for name in ("float32", "small"))
    assert small < full * (bytes_per_weight / 4 + 0.25)
    model = loaded(tmp_path / "small")
    assert len(model(TEXTS)) == len(TEXTS)
    given = [*TEXTS[1:], "two two"]
    found, expected = model.score(TEXTS, given), plain.score(TEXTS, given)
    relative = [
        abs(a.log_probability / b.log_probability - 1) for a, b in zip(found, expected, strict=True)
    ]
    assert max(relative) < tolerance
    assert max(relative) > 0


def test_a_folder_lists_the_pieces_in_the_order_of_their_ids(tokenizer, tmp_path):
    pytest.importorskip("ctranslate2")
    to_ctranslate2.write(untrained(tokenizer), tmp_path, "float32")
    pieces = json.loads((tmp_path / "shared_vocabulary.json").read_text("utf-8"))
    assert pieces == [tokenizer.piece(i) for i in range(tokenizer.vocabulary_size)]
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert [config[f"{name}_token"] for name in ("bos", "eos", "unk", "decoder_start")] == [
        *("<s>", "</s>", "<unk>", "<s>")
    ]
    assert config["add_source_eos"]
    assert config["layer_norm_epsilon"] == 1e-6


def test_the_position_table_covers_the_longest_source_and_translation(tokenizer):
    """By hand: 40 · 2 + 6 target tokens."""
    assert to_ctranslate2.positions(untrained(tokenizer, {"max_length_ratio": 2.0})) == 86
    learned = {"position": "learned", "max_length": 30}
    assert to_ctranslate2.positions(untrained(tokenizer, **learned)) == 30


@pytest.mark.parametrize(
    ("model", "decode", "message"),
    [
        ({"key_dim": 8, "value_dim": 6}, {}, "model.key_dim 8 and model.imported.value_dim 6"),
        ({"position": "alibi"}, {}, "do not support model.position=alibi"),
        ({"attention": "local"}, {}, "only full attention, got model.attention=local"),
        ({"decoder_attention": "linear"}, {}, "got model.decoder_attention=linear"),
        ({}, {"sampling": True}, "decode.sampling=True.*--sampling false"),
        ({}, {"coverage_penalty": 0.2}, "decode.coverage_penalty=0.2.*--coverage_penalty 0.0"),
        ({}, {"repetition_penalty": 1.2}, "decode.repetition_penalty=1.2.*--format saved_model"),
    ],
)
def test_unsupported_features_are_refused(model, decode, message):
    with pytest.raises(InputError, match=message):
        to_ctranslate2.require_supported(ModelConfig(**model), DecodeConfig(**decode))


def export(run_dir, to, **options):
    importlib.import_module("tf_transformer.commands.export").main(str(run_dir), str(to), **options)


def test_a_missing_package_is_an_error_before_weights_are_read(monkeypatch, tmp_path):
    RunFolder(tmp_path / "run").save_config(Config())
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ctranslate2" else find(name)
    )
    with pytest.raises(InputError, match=r"pip install 'tf_transformer\[ctranslate2\]'"):
        export(tmp_path / "run", tmp_path / "out", format="ctranslate2")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_options_of_the_other_format_are_refused(tmp_path):
    with pytest.raises(InputError, match="--format ctranslate2 has no --dtype"):
        export("run", tmp_path / "1", format="ctranslate2", dtype="bfloat16")
    with pytest.raises(InputError, match="or give --format ctranslate2"):
        export("run", tmp_path / "1", quantization="int8")


def test_the_command_writes_a_folder_that_translates_as_the_run_does(
    run, tmp_path, capsys, monkeypatch
):
    """The check runs the folder in a process without TensorFlow and without this project."""
    pytest.importorskip("ctranslate2")
    to = tmp_path / "small"
    monkeypatch.setattr(check_ctranslate2, "notes", lambda stored: [f"a note on {stored}"])
    export(run, to, format="ctranslate2", quantization="int8")
    printed = capsys.readouterr().out
    assert "translations differ from the run, " in printed
    assert "; a note on int8" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["small"]
    with pytest.raises(InputError, match="exists; give --to a new version"):
        export(run, to, format="ctranslate2")


@pytest.mark.slow
def test_a_wrong_folder_is_refused_and_removed(run, tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2")
    write = to_ctranslate2.write

    def wrong(translator, folder, *options):
        write(translator, folder, *options)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"add_source_eos": False}))

    monkeypatch.setattr(to_ctranslate2, "write", wrong)
    with pytest.raises(
        RuntimeError, match=r"the run it came from\. Source: .*its score in the run"
    ):
        export(run, tmp_path / "x", format="ctranslate2")
    assert not list(tmp_path.iterdir())


def test_the_program_prints_one_object_per_line(tokenizer, tmp_path):
    pytest.importorskip("ctranslate2")
    to_ctranslate2.write(untrained(tokenizer), tmp_path, "float32")
    odd = "one\n\n  \ntwo\u2028three\x85four\n\r\nbroken ".encode() + b"\xff\xfe\nlast"
    process = subprocess.run(
        [sys.executable, "-P", str(tmp_path / standalone.ARCHIVE)],
        input=odd,
        capture_output=True,
        check=True,
    )
    rows = [json.loads(line) for line in process.stdout.decode().splitlines()]
    assert len(rows) == 7
    assert rows[1] == rows[2] == {"translation": "", "score": 0.0}


ZEN_2, ZEN_4, ZEN_5 = "fpu avx2 fma", "avx2 avx512_vnni", "avx2 avx_vnni"


@pytest.mark.parametrize(
    ("vendor", "flags", "quantization", "mkl", "is_noted"),
    [
        ("AuthenticAMD", ZEN_2, "int8", "", True),
        ("AuthenticAMD", ZEN_2, "int8_float16", "0", True),
        ("HygonGenuine", ZEN_2, "int8", "", True),
        ("AuthenticAMD", ZEN_2, "int8", "1", False),
        ("AuthenticAMD", ZEN_2, "float32", "", False),
        ("AuthenticAMD", ZEN_4, "int8", "", False),
        ("AuthenticAMD", ZEN_5, "int8", "", False),
        ("GenuineIntel", ZEN_2, "int8", "", False),
    ],
)
def test_int8_on_a_processor_without_vnni_is_noted(
    vendor, flags, quantization, mkl, is_noted, tmp_path, monkeypatch
):
    one = (
        f"processor\t: 0\nvendor_id\t: {vendor}\nmodel\t: 1\nflags\t\t: {flags}\nbogomips\t: 1\n\n"
    )
    (tmp_path / "cpuinfo").write_text(one * 2)
    monkeypatch.setattr(check_ctranslate2, "PROCESSOR", tmp_path / "cpuinfo")
    monkeypatch.setenv("CT2_USE_MKL", mkl)
    notes = check_ctranslate2.notes(quantization)
    assert len(notes) == is_noted
    assert all("no VNNI instructions" in note and "CT2_USE_MKL=1" in note for note in notes)


@pytest.mark.parametrize("text", [None, "Processor\t: ARMv8\nFeatures\t: fp asimd i8mm\n"])
def test_int8_on_an_unknown_processor_is_not_noted(text, tmp_path, monkeypatch):
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(check_ctranslate2, "PROCESSOR", tmp_path / "cpuinfo")
    monkeypatch.delenv("CT2_USE_MKL", raising=False)
    assert check_ctranslate2.notes("int8") == []
