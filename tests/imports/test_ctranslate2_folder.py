"""CTranslate2 folders as runs: against the exported run, and against CTranslate2 itself."""

import json
import pathlib
import shutil
import struct
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import reference

from tf_transformer.commands import import_model
from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.export import to_ctranslate2
from tf_transformer.imports import ctranslate2_folder
from tf_transformer.imports.ctranslate2_file import read_model_file
from tf_transformer.imports.imported import find_sentencepiece
from tf_transformer.inference.translator import Translator
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs ctranslate2")

SIZES = {"num_layers": 2, "d_model": 16, "d_ff": 24, "num_heads": 2}
VARIANTS = {
    "paper": {},
    "pre-norm, target tied": {"norm_first": True, "tie_embeddings": "target"},
    "learned, untied": {"position": "learned", "max_length": 46, "tie_embeddings": "none"},
    "marian": {
        **{"position": "marian", "attention_bias": True, "output_bias": True},
        **{"norm_epsilon": 1e-3},
    },
    "halves": {"position": "sinusoidal_halves", "num_encoder_layers": 3, "num_decoder_layers": 1},
    "opennmt": {"position": "opennmt", "source_end": False},
    "fairseq, odd heads": {"position": "fairseq", "key_dim": 5, "value_dim": 5, "num_heads": 3},
    "rotary, gelu": {"position": "rotary", "activation": "gelu"},
    "relative, swiglu": {
        **{"position": "relative", "max_relative_distance": 3, "activation": "swiglu"},
    },
    "t5, rms_norm": {"position": "t5", "normalization": "rms_norm", "norm_first": True},
    "none, grouped queries, wide encoder": {
        **{"position": "none", "num_heads": 4, "num_key_value_heads": 2, "activation": "swish"},
        **{"encoder_d_ff": 40},
    },
    "wide encoder": {"encoder_d_model": 24, "encoder_num_heads": 3, "tie_embeddings": "target"},
}
INPUTS = np.array([[5, 6, 70, 2], [7, 2, 0, 0]]), np.array([[1, 8, 90], [1, 10, 11]])
LINES = ["one two three four five six seven", "hundred and twenty thousand"] * 3
TEXTS = ["one two", "seven hundred", "three"]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(LINES, vocabulary_size=300)


def untrained(tokenizer, **options):
    """A translator with random weights."""
    model = Transformer(tokenizer.vocabulary_size, ModelConfig(**SIZES | options))
    model.build()
    reference.randomize(model, seed=3)
    decode = DecodeConfig(beam_size=3, max_extra_length=6, max_source_length=40, average=1)
    return Translator(model, Codec(tokenizer), decode)


@pytest.mark.parametrize("name", VARIANTS)
def test_an_exported_run_comes_back(name, tokenizer, tmp_path):
    translator = untrained(tokenizer, **VARIANTS[name])
    to_ctranslate2.write(translator, tmp_path, "float32")
    imported = ctranslate2_folder.read(tmp_path)
    expected = np.asarray(translator.model(INPUTS))
    np.testing.assert_array_equal(np.asarray(imported.model(INPUTS)), expected)
    config, original = imported.config.model, translator.model.config
    assert (config.encoder, config.decoder) == (original.encoder, original.decoder)
    assert imported.config.decode == translator.config
    assert imported.codec.identity == translator.codec.identity


@pytest.mark.parametrize(
    ("quantization", "tolerance"), [("float16", 0.01), ("bfloat16", 0.1), ("int8", 0.2)]
)
def test_quantized_weights_are_read(quantization, tolerance, tokenizer, tmp_path):
    translator = untrained(tokenizer)
    to_ctranslate2.write(translator, tmp_path, quantization)
    model = ctranslate2_folder.read(tmp_path).model
    assert model.config.position == "sinusoidal"
    expected = np.asarray(translator.model(INPUTS))
    difference = np.abs(np.asarray(model(INPUTS)) - expected).max()
    assert 0 < difference < tolerance * np.ptp(expected)


def write_file(path, variables, version=6, kind="TransformerSpec", aliases=()):
    """Writes model.bin as `specs/model_spec.py` does; earlier versions lack dtypes and aliases."""

    def text(value):
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    dtypes = [*map(np.dtype, ("f4", "i1", "i2", "i4", "f2")), np.dtype(ml_dtypes.bfloat16)]
    content = struct.pack("<I", version) + text(kind) + struct.pack("<II", 2, len(variables))
    for name, array in variables.items():
        content += text(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        number, count = array.dtype.itemsize, array.size
        if version > 3:
            number, count = dtypes.index(array.dtype), array.nbytes
        content += struct.pack("<BI", number, count) + array.tobytes()
    if version > 2:
        content += struct.pack("<I", len(aliases)) + b"".join(text(x) for x in sum(aliases, ()))
    path.write_bytes(content)


def earlier_folder(folder, tokenizer):
    """A folder like those of OpenNMT-tf's first models, with the tokenizer beside it.

    It has no numbers, no configuration and no aliases. The unknown token is the last row.
    """
    folder.mkdir()
    options = {"d_model": 16, "num_heads": 8, "norm_first": True, "attention_bias": True}
    translator = untrained(tokenizer, **options, output_bias=True, tie_embeddings="none")
    to_ctranslate2.write(translator, folder, "float32")
    arrays = read_model_file(folder / "model.bin").arrays
    order = [*range(3), *range(4, tokenizer.vocabulary_size), 3]
    kept = {}
    for name, array in arrays.items():
        if array.ndim and not name.endswith("encodings"):
            name = name.replace("embeddings_0", "embeddings")
            kept[name] = array[order] if "embeddings" in name or "projection" in name else array
    write_file(folder / "model.bin", kept, 2, "TransformerBase")
    tokens = [tokenizer.piece(i) for i in order[:-1]]
    for side in ("source", "target"):
        lines = "".join(f"{token}\n" for token in ["<blank>", *tokens[1:]])
        (folder / f"{side}_vocabulary.txt").write_text(lines, "utf-8")
    for name in ("config.json", "shared_vocabulary.json", "metadata.json"):
        (folder / name).unlink()
    return (folder / "tokenizer.model").rename(folder.parent / "own.model")


def test_an_earlier_folder_computes_what_ctranslate2_computes(tokenizer, tmp_path):
    """Positions from 1 on, no end token of the source, the default ε, eight heads."""
    folder = tmp_path / "model"
    own = earlier_folder(folder, tokenizer)
    imported = ctranslate2_folder.read(folder, str(own))
    config = imported.config.model
    assert (config.position, config.imported.source_end, config.num_heads) == ("opennmt", False, 8)
    translator = Translator(imported.model, imported.codec, imported.config.decode)
    sources, targets = (
        [[tokenizer.piece(i) for i in tokenizer.encode(text)[:-1]] for text in texts]
        for texts in (TEXTS, TEXTS[::-1])
    )
    theirs = ctranslate2.Translator(str(folder), intra_threads=1)
    expected = [sum(row.log_probs) for row in theirs.score_batch(sources, targets)]
    scores = translator.score(TEXTS, TEXTS[::-1])
    np.testing.assert_allclose([x.log_probability for x in scores], expected, atol=1e-4)


def test_a_start_without_an_embedding_has_zeros(tokenizer, tmp_path):
    """As in models that CTranslate2 converts from Marian."""
    to_ctranslate2.write(untrained(tokenizer), tmp_path, "float32")
    flag = b"decoder/start_from_zero_embedding\0\0\1\1\0\0\0"  # int8, one byte
    with_bytes(lambda x: x.replace(flag + b"\0", flag + b"\1"))(tmp_path)
    imported = ctranslate2_folder.read(tmp_path)
    rows = np.asarray(imported.model.target_embedding.embeddings)
    assert not rows[:2].any()
    assert rows[2:].any(axis=1).all()
    translator = Translator(imported.model, imported.codec, imported.config.decode)
    pieces = [tokenizer.piece(i) for i in tokenizer.encode("two")[:-1]]
    (theirs,) = ctranslate2.Translator(str(tmp_path)).score_batch([pieces], [pieces])
    (score,) = translator.score(["two"], ["two"])
    assert score.log_probability == pytest.approx(sum(theirs.log_probs), abs=1e-4)


def test_the_command_makes_a_run_that_scores_as_the_exported_one(exported, tokenizer, tmp_path):
    import_model.main(ctranslate2=str(exported), run_dir=str(tmp_path / "run"))
    translator = Translator.from_run(tmp_path / "run")
    given = TEXTS, TEXTS[::-1]
    assert translator.score(*given) == untrained(tokenizer).score(*given)


def with_numbers(folder, **numbers):
    """Changes numbers of model.bin; None removes one."""
    file = read_model_file(folder / "model.bin")
    arrays = file.arrays | {name: np.float32(x) for name, x in numbers.items() if x is not None}
    kept = {
        name: x for name, x in arrays.items() if name not in numbers or numbers[name] is not None
    }
    write_file(folder / "model.bin", {name: np.asarray(x) for name, x in kept.items()})


def with_array(name, change):
    def edit(folder):
        arrays = read_model_file(folder / "model.bin").arrays
        write_file(folder / "model.bin", arrays | {name: change(arrays.get(name))})

    return edit


def with_number(name, value):
    return lambda folder: with_numbers(folder, **{name: value})


def with_key(key, value):
    def edit(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: value}), "utf-8")

    return edit


def with_bytes(change):
    def edit(folder):
        path = folder / "model.bin"
        path.write_bytes(change(path.read_bytes()))

    return edit


def with_tokens(change):
    def edit(folder):
        path = folder / "shared_vocabulary.json"
        path.write_text(json.dumps(change(json.loads(path.read_text("utf-8")))), "utf-8")

    return edit


GAMMA = "encoder/layer_1/ffn/layer_norm/gamma"
HIDDEN = "decoder/layer_0/ffn/linear_0/weight"
ENCODINGS = "encoder/position_encodings/encodings"
BROKEN = {
    "no folder": (shutil.rmtree, "--ctranslate2 .* is not a folder"),
    "no weights": (lambda x: (x / "model.bin").unlink(), "model.bin is missing"),
    "cut short": (with_bytes(lambda x: x[:5000]), "cut short or no model of CTranslate2: it ends"),
    "cut in its head": (with_bytes(lambda x: x[:6]), "cut short or no model of CTranslate2"),
    "longer": (with_bytes(lambda x: x + b"more"), "has 4 more bytes than expected"),
    "a foreign file": (with_bytes(lambda x: b"PK" + x), "has version .* of CTranslate2's format"),
    "a newer file": (with_bytes(lambda x: b"\x07" + x[1:]), "has version 7"),
    "another kind": (
        with_bytes(lambda x: x.replace(b"TransformerSpec", b"WhisperSpeckled")),
        "is a WhisperSpeckled. Only a TransformerSpec can be a run",
    ),
    "NaN": (with_array(GAMMA, lambda x: x * np.float32(np.nan)), f"{GAMMA} has values that are"),
    "another shape": (
        with_array(HIDDEN, lambda x: x[:, :-1]),
        rf"model.bin: {HIDDEN} has the shape \(24, 15\), and the configuration needs \(24, 16\)",
    ),
    "a foreign weight": (
        with_array("encoder/layernorm_embedding/gamma", lambda x: np.ones(16, np.float32)),
        "does not understand: encoder/layernorm_embedding/gamma",
    ),
    "a missing weight": (
        with_number("encoder/layer_1/ffn/linear_1/bias", None),
        "have no encoder/layer_1/ffn/linear_1/bias",
    ),
    "no embeddings": (
        with_number("decoder/embeddings/weight", None),
        "must have the matrix decoder/embeddings/weight",
    ),
    "source features": (
        with_array("encoder/embeddings_1/weight", lambda x: np.ones((3, 4), np.float32)),
        "source features",
    ),
    "alibi": (with_number("decoder/alibi", 1), "decoder/alibi must be 0"),
    "unscaled": (with_number("encoder/scale_embeddings", 0), "encoder/scale_embeddings must be 1"),
    "activation": (
        with_number("decoder/activation", 1),
        r"decoder/activation must be one of 0 \(relu\), 2 \(swish\), 3 \(gelu\), got 1",
    ),
    "two norms": (with_number("encoder/pre_norm", 1), "the same norm_first, got True and False"),
    "one position": (with_number(ENCODINGS, None), "must both have positions, or neither"),
    "two positions": (
        with_array(ENCODINGS, lambda x: x + np.float32(1)),
        "must have the same kind and number of positions",
    ),
    "no configuration": (lambda x: (x / "config.json").unlink(), "config.json cannot be read"),
    "an unknown key": (with_key("lang_ids", [1]), "config.json has the key 'lang_ids'"),
    "start of source": (with_key("add_source_bos", True), "add_source_bos must be false"),
    "no start": (with_key("decoder_start_token", None), "decoder_start_token must be a token"),
    "an ε of words": (with_key("layer_norm_epsilon", "small"), "layer_norm_epsilon must be a"),
    "a list of numbers": (with_tokens(lambda x: [1, *x[1:]]), "must be a list of tokens"),
    "an object": (with_tokens(lambda x: {"a": 1}), "must hold a JSON list, got dict"),
    "no vocabulary": (
        lambda x: (x / "shared_vocabulary.json").unlink(),
        "must have shared_vocabulary.json or source_vocabulary.json",
    ),
    "fewer tokens": (with_tokens(lambda x: x[:-1]), "has 299 tokens, and the embeddings have 300"),
    "a token twice": (with_tokens(lambda x: [*x[:-1], x[5]]), "twice"),
    "no end": (with_tokens(lambda x: [*x[:2], "<e>", *x[3:]]), "has no </s>, the token for end"),
    "no pieces": (
        lambda x: (x / "tokenizer.model").unlink(),
        "has no SentencePiece model.*--tokenizer",
    ),
    "a search of words": (
        lambda x: (x / "metadata.json").write_text('{"decoding": {"beam_size": "wide"}}'),
        "metadata.json: decode.beam_size must be",
    ),
    "no search": (
        lambda x: (x / "metadata.json").write_text('{"decoding": 3}'),
        "metadata.json: decoding must be an object, got 3",
    ),
}


@pytest.fixture(scope="module")
def exported(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ctranslate2") / "model"
    to_ctranslate2.write(untrained(tokenizer), folder, "float32")
    return folder


@pytest.mark.parametrize("fault", BROKEN)
def test_a_folder_that_cannot_be_imported_is_an_error_and_leaves_nothing(fault, exported, tmp_path):
    folder = pathlib.Path(shutil.copytree(exported, tmp_path / "model"))
    make_fault, message = BROKEN[fault]
    make_fault(folder)
    with pytest.raises(InputError, match=message):
        import_model.main(ctranslate2=str(folder), run_dir=str(tmp_path / "runs" / "x"))
    assert not (tmp_path / "runs").exists()


def test_a_key_that_is_off_is_named(exported, tmp_path):
    folder = pathlib.Path(shutil.copytree(exported, tmp_path / "model"))
    expected = ctranslate2_folder.read(folder)
    with_key("lang_ids", [])(folder)
    imported = ctranslate2_folder.read(folder)
    assert imported.config == expected.config
    assert imported.notes == [
        "config.json: not read, because their values change nothing: lang_ids"
    ]


def test_the_rules_for_texts_come_back(tokenizer, tmp_path):
    rules = {"copy_without_letters": True, "lower_capitals": True}
    plain = untrained(tokenizer)
    options = {"punctuation": "opus", "split": "sentences", "split_language": "de"}
    decode = replace(plain.config, **options, trained_source_length=30)
    translator = Translator(plain.model, plain.codec, decode, **rules)
    to_ctranslate2.write(translator, tmp_path, "float32")
    config = ctranslate2_folder.read(tmp_path).config
    assert {name: getattr(config.task, name) for name in rules} == rules
    assert config.decode == decode


def test_the_search_of_a_folder_is_read(exported, tmp_path):
    """Exports had search.json before, and folders of other programs have neither file."""
    folder = pathlib.Path(shutil.copytree(exported, tmp_path / "model"))
    expected = ctranslate2_folder.read(folder).config
    (folder / "metadata.json").write_text('{"author": "someone"}')
    assert ctranslate2_folder.read(folder).config.decode.beam_size == 2
    (folder / "metadata.json").unlink()
    assert ctranslate2_folder.read(folder).config.decode.beam_size == 2
    options = {"beam_size": 3, "max_extra_length": 6, "max_source_length": 40, "positions": 46}
    search = options | {"length_penalty_offset": 5.0, "lower_capitals": True}
    (folder / "search.json").write_text(json.dumps(search))
    found = ctranslate2_folder.read(folder).config
    assert found.decode == expected.decode
    assert found.task == replace(expected.task, lower_capitals=True)


@pytest.mark.parametrize(
    ("variant", "fault", "message"),
    [
        ("relative, swiglu", ("relative_position_values", 1), "relative_position_values must be 0"),
        ("relative, swiglu", ("relative_position_keys", 1), "must share one table"),
        ("t5, rms_norm", ("relative_attention_max_distance", 1), "max_distance must be 128"),
        ("rotary, gelu", ("rotary_interleave", -1), "rotary_interleave must be 1, got 0"),
    ],
)
def test_positions_of_another_kind_are_refused(variant, fault, message, tokenizer, tmp_path):
    to_ctranslate2.write(untrained(tokenizer, **VARIANTS[variant]), tmp_path, "float32")
    name, change = fault
    with_array(f"encoder/layer_0/self_attention/{name}", lambda x: x + np.float32(change))(tmp_path)
    with pytest.raises(InputError, match=message):
        ctranslate2_folder.read(tmp_path)


def test_exactly_one_model_is_given(tmp_path):
    run_dir = str(tmp_path / "run")
    for options, message in (
        ({}, "give one model with one of --marian, --ctranslate2.*got none"),
        ({"marian": "a", "ctranslate2": "b"}, "got --marian and --ctranslate2"),
        ({"marian": "a", "tokenizer": "b"}, "--tokenizer needs --ctranslate2.*got --marian"),
        ({"ctranslate2": "a", "num_heads": 2}, "--num_heads needs --opennmt_tf, got --ctranslate2"),
    ):
        with pytest.raises(InputError, match=message):
            import_model.main(run_dir=run_dir, **options)
    with pytest.raises(InputError, match="takes one file or two, got 3"):
        find_sentencepiece(tmp_path, "a,b,c")
