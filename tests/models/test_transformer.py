"""The whole model: against NumPy, its independences, its options, in Keras, and its sizes."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.config import ImportedConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.models.transformer import Transformer

VOCABULARY = 23
# Two sentences; 0 is padding, and only the source of the second has some.
SOURCE = np.array([[5, 6, 7, 8, 2], [9, 10, 2, 0, 0]])
TARGET = np.array([[1, 11, 12, 13, 14, 15, 16], [1, 17, 18, 19, 20, 21, 22]])
LABELS = np.array([[11, 12, 13, 14, 15, 16, 2], [17, 18, 19, 2, 0, 0, 0]])
SIZES = {"num_layers": 2, "d_model": 14, "d_ff": 17, "num_heads": 2, "max_length": 13}
VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "learned": {"position": "learned"},
    "odd heads": {"key_dim": 3, "value_dim": 5, "attention_bias": True},
    "untied": {"tie_embeddings": "none", "num_layers": 4},
    "more encoder layers": {"num_encoder_layers": 3, "num_decoder_layers": 1},
    "another encoder": {
        **{"encoder_d_model": 20, "encoder_d_ff": 11, "encoder_num_heads": 5},
        **{"num_decoder_layers": 3, "tie_embeddings": "target", "source_vocabulary_size": 29},
    },
    "rotary, grouped queries, gelu": {
        **{"position": "rotary", "key_dim": 6, "value_dim": 5, "activation": "gelu"},
        **{"num_heads": 6, "num_key_value_heads": 2, "attention_bias": True},
    },
    "t5, rms_norm, swiglu": {
        **{"position": "t5", "normalization": "rms_norm", "norm_first": True},
        **{"activation": "swiglu"},
    },
}

each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
# These have most of the options together; the other variants are slow tests.
COMBINED = ("post-norm", "another encoder", "rotary, grouped queries, gelu", "t5, rms_norm, swiglu")
combined_variants = pytest.mark.parametrize(
    "variant",
    [
        pytest.param(variant, id=name, marks=() if name in COMBINED else pytest.mark.slow)
        for name, variant in VARIANTS.items()
    ],
)


def make_model(seed=3, dtype=None, source_vocabulary_size=None, **changes):
    """A small model with random gains and biases; equal seeds give equal models and noise."""
    keras.utils.set_random_seed(seed)
    config = ModelConfig(**SIZES | changes)
    model = Transformer(VOCABULARY, config, source_vocabulary_size, dtype=dtype)
    model.build()
    return reference.randomize(model, seed)


def logits(model, source, target, training=False):
    found = model((source, target), training=training)
    return ops.convert_to_numpy(ops.cast(found, "float32"))


# Against NumPy


@each_variant
@pytest.mark.parametrize("tie_embeddings", ["all", pytest.param("target", marks=pytest.mark.slow)])
def test_logits_equal_numpy_on_one_sentence_at_a_time_without_padding(variant, tie_embeddings):
    model = make_model(**{"tie_embeddings": tie_embeddings} | variant)
    batch = logits(model, SOURCE, TARGET)
    for source, target, ours in zip(SOURCE, TARGET, batch, strict=True):
        expected = reference.forward(model, source[source != 0], target).logits
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5)


@each_variant
@pytest.mark.parametrize(
    "remat", [False, pytest.param(True, marks=pytest.mark.slow)], ids="remat={}".format
)
def test_memory_and_all_attention_weights_equal_numpy(variant, remat):
    """Of every layer and head; with `remat` in training, because only training recomputes."""
    model = make_model(**variant, remat=remat, dropout_rate=0.0)
    found = model.run((SOURCE, TARGET), training=remat)
    for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        length = (source != 0).sum()
        expected = reference.forward(model, source[:length], target)
        memory = reference.array(found.memory)[row, :length]
        np.testing.assert_allclose(memory, expected.memory, atol=1e-5)
        for name in ("encoder_attention", "decoder_attention", "cross_attention"):
            layers, expected_layers = getattr(found, name), getattr(expected, name)
            assert len(layers) == len(expected_layers) > 0
            for weights, of_layer in zip(layers, expected_layers, strict=True):
                weights = reference.array(weights)
                _, queries, keys = of_layer.shape
                np.testing.assert_allclose(
                    weights[row, :, :queries, :keys], of_layer, rtol=0, atol=1e-5
                )
                assert not weights[row, :, :, keys:].any()  # padding
                np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)


@combined_variants
def test_each_way_to_logits_gives_the_same(variant):
    model = make_model(**variant)
    expected = logits(model, SOURCE, TARGET)
    states = model.run((SOURCE, TARGET)).states
    np.testing.assert_array_equal(ops.convert_to_numpy(model.logits(states)), expected)
    rows, matrix = map(reference.array, model.factors(states))
    np.testing.assert_allclose(rows @ matrix.T, expected, rtol=0, atol=1e-5)


# Independences


@pytest.mark.parametrize(
    "training",
    [
        pytest.param(False, id="inference", marks=pytest.mark.slow),
        pytest.param(True, id="training"),
    ],
)
@combined_variants
def test_a_later_token_changes_nothing_before_it(variant, training):
    changed = TARGET.copy()
    changed[:, 4] = 3
    variant = {"dropout_rate": 0.3, "attention_dropout_rate": 0.2} | variant
    # Two models with one seed, because a model draws new dropout noise in every call.
    before = logits(make_model(**variant), SOURCE, TARGET, training)
    after = logits(make_model(**variant), SOURCE, changed, training)
    np.testing.assert_allclose(after[:, :4], before[:, :4], rtol=0, atol=1e-6)
    assert (np.abs(after[:, 4:] - before[:, 4:]).max(axis=(0, 2)) > 1e-3).all()


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("num_layers", [2, 4])
def test_more_source_padding_changes_nothing(num_layers, norm_first):
    model = make_model(num_layers=num_layers, norm_first=norm_first)
    padded = np.pad(SOURCE, [(0, 0), (0, 6)])
    difference = logits(model, padded, TARGET) - logits(model, SOURCE, TARGET)
    assert np.abs(difference).max() <= 1e-5


@pytest.mark.parametrize("num_layers", [2, 4])
def test_target_padding_changes_nothing_before_it(num_layers):
    model = make_model(num_layers=num_layers)
    padded = logits(model, SOURCE, np.pad(TARGET, [(0, 0), (0, 3)]))
    difference = padded[:, : TARGET.shape[1]] - logits(model, SOURCE, TARGET)
    assert np.abs(difference).max() <= 1e-5


def test_the_sentences_of_a_batch_are_independent():
    model = make_model()
    other_source, other_target = SOURCE.copy(), TARGET.copy()
    other_source[1], other_target[1] = [3, 3, 3, 3, 2], [1, 4, 4, 4, 4, 4, 4]
    before, after = logits(model, SOURCE, TARGET), logits(model, other_source, other_target)
    np.testing.assert_allclose(after[0], before[0], rtol=0, atol=1e-6)
    assert np.abs(after[1] - before[1]).max() > 0.1
    single = logits(model, SOURCE[:1], TARGET[:1])
    np.testing.assert_allclose(single[0], before[0], rtol=0, atol=1e-5)


def test_logits_of_a_source_that_is_all_padding_are_finite():
    model = make_model()
    source = np.stack([SOURCE[0], np.zeros_like(SOURCE[0])])
    outputs = logits(model, source, TARGET)
    assert np.isfinite(outputs).all()
    np.testing.assert_allclose(outputs[0], logits(model, SOURCE, TARGET)[0], rtol=0, atol=1e-5)


# Options


def test_the_encoder_may_leave_out_the_end_token():
    """The logits are those of sources without it; the end token of an empty text stays."""
    model = make_model(source_end=False)
    without_end = np.where(SOURCE == 2, 0, SOURCE)
    expected = logits(make_model(), without_end, TARGET)
    np.testing.assert_allclose(logits(model, SOURCE, TARGET), expected, atol=1e-5)
    assert not np.allclose(logits(make_model(), SOURCE, TARGET), expected, atol=1e-2)
    np.testing.assert_array_equal(
        *(logits(each, np.array([[2, 0]]), TARGET[:1]) for each in (model, make_model()))
    )


def test_all_embeddings_tied():
    model = make_model(tie_embeddings="all")
    assert model.source_embedding is model.target_embedding is model.output_embedding


def test_target_and_output_embeddings_tied():
    model = make_model(tie_embeddings="target")
    assert model.output_embedding is model.target_embedding
    assert model.source_embedding is not model.target_embedding


def test_no_embeddings_tied():
    model = make_model(tie_embeddings="none")
    parts = (model.source_embedding, model.target_embedding, model.output_embedding)
    assert len({id(part.embeddings) for part in parts}) == 3


@pytest.mark.parametrize(("tie_embeddings", "matrices"), [("all", 1), ("target", 2), ("none", 3)])
def test_each_embedding_matrix_is_counted_once(tie_embeddings, matrices):
    sizes = [weight.shape for weight in make_model(tie_embeddings=tie_embeddings).weights]
    assert sizes.count((VOCABULARY, 14)) == matrices


def test_attention_biases_are_an_option():
    # Two encoder layers of 1 and two decoder layers of 2 attentions: 6, each of 2 heads with
    # queries and keys of 2 · 3, values of 2 · 5 and an output of 14.
    without = make_model(key_dim=3, value_dim=5).count_params()
    biased = make_model(key_dim=3, value_dim=5, attention_bias=True).count_params()
    assert biased - without == 6 * (6 + 6 + 10 + 14)


@pytest.mark.parametrize(
    "option",
    ["dropout_rate", "attention_dropout_rate", "feed_forward_dropout_rate", "layer_drop_rate"],
)
def test_each_dropout_works_in_training_and_not_at_inference(option):
    none = {"dropout_rate": 0.0}
    without, model = make_model(**none), make_model(**none | {option: 0.5})
    expected = logits(without, SOURCE, TARGET)
    np.testing.assert_array_equal(logits(without, SOURCE, TARGET, training=True), expected)
    np.testing.assert_array_equal(logits(model, SOURCE, TARGET), expected)
    # A call with LayerDrop skips none of the four layers with probability 1/16.
    draws = np.stack([logits(model, SOURCE, TARGET, training=True) for _ in range(6)])
    assert np.abs(draws - expected).max() > 0.1
    assert np.ptp(draws, axis=0).max() > 0.1  # new noise in every call


def test_encoder_and_decoder_take_training():
    model = make_model(dropout_rate=0.0, attention_dropout_rate=0.5)
    for run in (
        lambda training: model.encode(SOURCE, training=training),
        lambda training: model.run((SOURCE, TARGET), training=training).states,
    ):
        inference, again, training = (ops.convert_to_numpy(run(t)) for t in (False, False, True))
        np.testing.assert_array_equal(again, inference)
        assert np.abs(training - inference).max() > 0.1


@pytest.mark.parametrize("side", ["source", "target"])
def test_dropout_on_the_sums_of_embeddings_and_positions(side, monkeypatch):
    # Paper section 5.4: "to the sums of the embeddings and the positional encodings in both the
    # encoder and decoder stacks".
    model = make_model(dropout_rate=0.5)
    layer = (model.encoder if side == "source" else model.decoder).layers[0]
    inputs = []

    def recording(x, *others, original=layer.call, **options):
        inputs.append(ops.convert_to_numpy(x))
        return original(x, *others, **options)

    monkeypatch.setattr(layer, "call", recording)
    for training in (False, True):
        model((SOURCE, TARGET), training=training)
    sums, dropped = inputs
    kept = dropped != 0
    assert 0.3 < kept.mean() < 0.7
    np.testing.assert_allclose(dropped[kept], 2 * sums[kept], rtol=1e-6)


def test_positions_beyond_the_learned_table_are_an_error():
    model = make_model(position="learned")
    with pytest.raises(ValueError, match="has 13 positions, but the sequence has 14"):
        model((SOURCE, np.ones((2, 14), int)))


def test_sinusoids_have_no_last_position():
    model = make_model(num_layers=1)
    logits(model, SOURCE, TARGET)
    long = np.full((1, 5000), 7)
    assert np.isfinite(logits(model, long, TARGET[:1])).all()


@pytest.mark.parametrize(
    ("tie_embeddings", "sizes"), [("target", [23, 29]), ("none", [23, 23, 29])]
)
def test_source_and_target_may_have_their_own_vocabularies(tie_embeddings, sizes):
    model = make_model(source_vocabulary_size=29, tie_embeddings=tie_embeddings)
    embeddings = {part.name: part for part in model.layers if "embedding" in part.name}
    assert sorted(part.vocabulary_size for part in embeddings.values()) == sizes
    assert model.source_embedding.vocabulary_size == 29
    assert logits(model, SOURCE + 23 * (SOURCE == 5), TARGET).shape[-1] == VOCABULARY


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), r"vocabulary sizes must be positive, got 0 \(target\) and 0 \(source\)"),
        ((7, None, -1), r"must be positive, got 7 \(target\) and -1 \(source\)"),
        ((7, {"tie_embeddings": "all"}, 8), r"same size, got 8 .* and 7 \(target\)\. Use tie_emb"),
    ],
)
def test_impossible_vocabulary_sizes_are_an_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        Transformer(*arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"encoder_d_model": 20, "encoder_num_heads": 2},
            "model.imported.encoder_d_model (20) and model.d_model (14) must be equal for "
            "model.tie_embeddings=all. Use target or none.",
        ),
        (
            {"encoder_d_model": 20, "encoder_num_heads": 3, "tie_embeddings": "none"},
            "model.imported.encoder_d_model (20) must be a multiple of "
            "model.imported.encoder_num_heads (3), or model.key_dim and model.imported.value_dim "
            "must both be given.",
        ),
        (
            {"encoder_d_model": 15, "encoder_num_heads": 3, "tie_embeddings": "none"},
            "model.imported.encoder_d_model must be even for sinusoidal positions, got 15.",
        ),
        ({"num_decoder_layers": -1}, "model.num_decoder_layers must not be negative, got -1."),
    ],
)
def test_impossible_sizes_of_an_encoder_are_an_error(changes, message):
    with pytest.raises(InputError) as error:
        ModelConfig(**SIZES | changes)
    assert str(error.value) == message


# Keras

SAVED = VARIANTS | {
    "own source embedding": {"tie_embeddings": "target"},
    "relative": {"position": "relative", "max_relative_distance": 2},
    "dropout": {
        "dropout_rate": 0.3,
        "attention_dropout_rate": 0.2,
        "feed_forward_dropout_rate": 0.1,
        "layer_drop_rate": 0.4,
    },
    "remat": {"remat": True},
    "marian": {"position": "marian", "activation": "swish", "norm_epsilon": 1e-3}
    | {"output_bias": True, "zero_start": True},
    "opennmt": {"position": "opennmt", "source_end": False},
    "local": {"attention": "local", "attention_window": 3},
    "full, then local": {"decoder_attention": "local", "attention_window": 2},
    "mixed_bfloat16": {"dtype": "mixed_bfloat16"},
    "mixed_float16": {"dtype": "mixed_float16"},
    "bfloat16": {"dtype": "bfloat16"},
}


QUICK = ("post-norm", "another encoder", "t5, rms_norm, swiglu", "dropout", "remat", "marian")


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(variant, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, variant in SAVED.items()
    ],
)
def test_saved_and_loaded_model_computes_the_same(variant, tmp_path):
    model = make_model(**variant)
    expected = logits(model, SOURCE, TARGET)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.config == model.config
    np.testing.assert_array_equal(logits(loaded, SOURCE, TARGET), expected)
    policies = {layer.dtype_policy.name for layer in loaded._flatten_layers()}
    assert policies == {model.dtype_policy.name}


def test_a_model_of_an_earlier_version_has_the_traits_of_imported_models(tmp_path):
    """Its file has them among the other fields of the configuration."""
    model = make_model(**SAVED["marian"])
    model.save(tmp_path / "model.keras")
    with (
        zipfile.ZipFile(tmp_path / "model.keras") as new,
        zipfile.ZipFile(tmp_path / "earlier.keras", "w") as earlier,
    ):
        for name in new.namelist():
            content = new.read(name)
            if name == "config.json":
                file = json.loads(content)
                fields = file["config"]["config"]
                fields |= fields.pop("imported")
                content = json.dumps(file).encode()
            earlier.writestr(name, content)
    loaded = keras.saving.load_model(tmp_path / "earlier.keras")
    assert loaded.config == model.config
    expected = logits(model, SOURCE, TARGET)
    np.testing.assert_array_equal(logits(loaded, SOURCE, TARGET), expected)


def test_every_option_of_the_model_is_saved_above():
    options = set().union(SIZES, *SAVED.values())
    not_in_config = {"dtype", "source_vocabulary_size"}
    names = {
        field.name
        for config in (ModelConfig, ImportedConfig)
        for field in dataclasses.fields(config)
    }
    not_set = {"architecture", "imported"}  # of other models; the fields are set one by one
    assert options - not_in_config == names - not_set


LOAD = """
import keras, pathlib, sys
before = set(sys.modules)
import tf_transformer.models
imported = {name.partition(".")[0] for name in set(sys.modules) - before}
import numpy as np
folder = pathlib.Path(sys.argv[1])
source, target = np.load(folder / "source.npy"), np.load(folder / "target.npy")
for path in folder.glob("*.keras"):
    logits = keras.saving.load_model(path)((source, target))
    np.save(path.with_suffix(".npy"), keras.ops.convert_to_numpy(keras.ops.cast(logits, "float32")))
print(*imported)
"""


def test_a_fresh_process_loads_models_with_only_keras_and_this_package(tmp_path):
    random = np.random.default_rng(1)
    source, target = (random.integers(1, VOCABULARY, (3, size)) for size in (6, 9))
    np.save(tmp_path / "source.npy", source)
    np.save(tmp_path / "target.npy", target)
    expected = {}
    for name in ("post-norm", "learned", "untied", "another encoder", "mixed_bfloat16"):
        model = make_model(**SAVED[name])
        model.save(tmp_path / f"{name}.keras")
        expected[name] = logits(model, source, target)
    root = pathlib.Path(__file__).parents[2]
    imported = subprocess.run(
        [sys.executable, "-c", LOAD, tmp_path],
        env=os.environ | {"PYTHONPATH": str(root), "KERAS_BACKEND": keras.backend.backend()},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "tf_transformer" in imported
    assert not [n for n in imported if n.startswith("tensorflow") or n == "sentencepiece"]
    for name, ours in expected.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), ours, err_msg=name)


def compiled(model):
    """The model with a loss over real tokens and an optimizer, as in a user's own program."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    options = {"weighted_metrics": [], "jit_compile": reference.FIT_COMPILES}
    model.compile(keras.optimizers.Adam(0.01), loss, **options)
    return model


def fit(model, epochs):
    """The losses of some updates on one batch."""
    data = {"x": (SOURCE, TARGET), "y": LABELS}
    return model.fit(**data, epochs=epochs, shuffle=False, verbose=0).history["loss"]


def test_evaluate_gives_the_cross_entropy_of_real_tokens():
    model = compiled(make_model())
    losses = []
    for source, target, labels in zip(SOURCE, TARGET, LABELS, strict=True):
        expected = reference.softmax(reference.forward(model, source[source != 0], target).logits)
        losses += [-np.log(row[label]) for row, label in zip(expected, labels, strict=True)]
    real = np.array(losses)[LABELS.reshape(-1) != 0]
    found = model.evaluate((SOURCE, TARGET), LABELS, verbose=0)
    assert found == pytest.approx(real.mean(), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    [{}, {"remat": True, "dtype": "mixed_bfloat16"}],
    ids=["plain", "remat in mixed_bfloat16"],
)
def test_fit_continues_with_a_loaded_model_as_with_the_saved_one(variant, tmp_path):
    """Keras saves the optimizer, but not the state of dropout's noise."""
    model = compiled(make_model(dropout_rate=0.0, **variant))
    [first] = fit(model, epochs=1)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    expected, found = fit(model, epochs=8), fit(loaded, epochs=8)
    assert min(expected) < 0.8 * first
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for ours, other in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_allclose(reference.array(ours), reference.array(other), atol=1e-4)


def test_the_model_is_a_layer_of_a_functional_model(tmp_path):
    model = make_model()
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    functional = keras.Model([source, target], ops.softmax(model((source, target))))
    assert functional.output_shape == (None, None, VOCABULARY)
    expected = reference.softmax(logits(model, SOURCE, TARGET).astype("float64"))
    functional.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for each in (functional, loaded):
        found = ops.convert_to_numpy(each([SOURCE, TARGET]))
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("variant", [{"tie_embeddings": "none", "position": "learned"}])
def test_the_encoder_can_have_another_head(variant, tmp_path):
    """It is shared, not copied: `fit` changes its weights. The decoder is not saved."""
    model = make_model(**variant)
    ids = keras.Input((None,), dtype="int32")
    memory = model.encode(ids)
    assert tuple(memory.shape) == (None, None, 14)
    expected = ops.convert_to_numpy(model.encode(SOURCE))
    found = ops.convert_to_numpy(keras.Model(ids, memory)(SOURCE))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    mean = keras.layers.GlobalAveragePooling1D()(memory, mask=ops.not_equal(ids, 0))
    classifier = keras.Model(ids, keras.layers.Dense(3)(mean))
    before = [reference.array(weight) for weight in model.encoder.trainable_weights]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    classifier.compile("adam", loss, jit_compile=reference.FIT_COMPILES)
    classifier.fit(SOURCE, np.array([0, 2]), verbose=0)
    for weight, value in zip(model.encoder.trainable_weights, before, strict=True):
        assert np.abs(reference.array(weight) - value).max() > 1e-5
    classifier.save(tmp_path / "classifier.keras")
    loaded = keras.saving.load_model(tmp_path / "classifier.keras")
    assert loaded.count_params() < model.count_params()
    np.testing.assert_array_equal(
        ops.convert_to_numpy(loaded(SOURCE)), ops.convert_to_numpy(classifier(SOURCE))
    )


def test_the_summary_has_all_shapes():
    lines = []
    make_model().summary(line_length=100, print_fn=lines.append)
    table = "\n".join(map(str, lines))
    for part in ("encoder", "decoder", "target_embedding", "source_position"):
        assert part in table
    assert table.count("(None, None, 14)") == 7
    assert "?" not in table


def test_the_encoder_is_drawn(tmp_path):
    """Keras draws a whole subclassed model as one box."""
    pytest.importorskip("pydot", reason="Keras draws with pydot")
    model = make_model()
    ids = keras.Input((None,), dtype="int32")
    encoder = keras.Model(ids, model.encode(ids))
    drawn = keras.utils.model_to_dot(encoder, show_shapes=True).to_string()
    for part in ("TokenEmbedding", "SinusoidalPosition", "Encoder", "(None, None, 14)"):
        assert part in drawn
    if shutil.which("dot") is None:
        pytest.skip("Keras writes pictures with Graphviz' dot")
    for each, name in ((encoder, "encoder.png"), (model, "model.png")):
        keras.utils.plot_model(each, tmp_path / name, show_shapes=True)
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_model_made_from_its_config_has_the_same_weights():
    model = make_model(tie_embeddings="target", norm_first=True, key_dim=3)
    again = Transformer.from_config(model.get_config())
    again.build()
    assert again.config == model.config
    assert [w.shape for w in again.weights] == [w.shape for w in model.weights]


def test_mixed_bfloat16_computes_the_softmax_in_float32(monkeypatch):
    whole = make_model()
    model = Transformer(VOCABULARY, whole.config, dtype="mixed_bfloat16")
    model.build()
    model.set_weights(whole.get_weights())
    dtypes = []
    softmax = ops.softmax

    def recording_softmax(x, axis):
        dtypes.append(keras.backend.standardize_dtype(x.dtype))
        return softmax(x, axis=axis)

    monkeypatch.setattr(ops, "softmax", recording_softmax)
    output = model((SOURCE, TARGET))
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    assert {weight.dtype for weight in model.weights} == {"float32"}
    assert dtypes == ["float32"] * 6  # two in the encoder, four in the decoder
    # 8 bits of precision, on logits with a standard deviation of about 0.7.
    difference = reference.array(output) - logits(whole, SOURCE, TARGET)
    assert np.abs(difference).mean() < 0.05


# Sizes

# Rows of the paper's Table 3 that change the size, and its count of parameters in millions.
TABLE_3 = [
    ("base", {}, 65),
    ("(A) 1 head", {"num_heads": 1, "key_dim": 512, "value_dim": 512}, 65),
    ("(A) 4 heads", {"num_heads": 4, "key_dim": 128, "value_dim": 128}, 65),
    ("(A) 16 heads", {"num_heads": 16, "key_dim": 32, "value_dim": 32}, 65),
    ("(A) 32 heads", {"num_heads": 32, "key_dim": 16, "value_dim": 16}, 65),
    ("(B) d_k 16", {"key_dim": 16, "value_dim": 64}, 58),
    ("(B) d_k 32", {"key_dim": 32, "value_dim": 64}, 60),
    ("(C) 2 layers", {"num_layers": 2}, 36),
    ("(C) 4 layers", {"num_layers": 4}, 50),
    ("(C) 8 layers", {"num_layers": 8}, 80),
    ("(C) d_model 256", {"d_model": 256, "key_dim": 32, "value_dim": 32}, 28),
    ("(C) d_model 1024", {"d_model": 1024, "key_dim": 128, "value_dim": 128}, 168),
    ("(C) d_ff 1024", {"d_ff": 1024}, 53),
    ("(C) d_ff 4096", {"d_ff": 4096}, 90),
    ("(E) learned positions", {"position": "learned", "max_length": 512}, 65),
    ("big", {"preset": "big"}, 213),
]


def parameters(*, d_model=512, d_ff=2048, num_layers=6, num_heads=8, key_dim=64, value_dim=64):
    """Number of parameters with the paper's vocabulary of 37,000 and tied embeddings.

    Embeddings: V · D, once.
    An attention: Wᵠ and Wᴷ of D · H d_k, Wⱽ of D · H d_v, Wᴼ of H d_v · D, no biases.
    A feed-forward network: D · F + F and F · D + D.
    A norm: 2 D.
    An encoder layer has one attention and two norms, a decoder layer two and three; each has
    one feed-forward network.
    """
    attention = 2 * d_model * num_heads * key_dim + 2 * d_model * num_heads * value_dim
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return 37_000 * d_model + num_layers * (encoder_layer + decoder_layer)


def count(preset="base", **changes):
    """Number of parameters of a model whose weights have no values, to save 900 MB."""
    with keras.StatelessScope(initialize_variables=False):
        model = Transformer(37_000, ModelConfig.preset(preset, **changes))
        model.build()
    counted = model.count_params()
    keras.utils.clear_session()  # else Keras initialises the variables later
    return counted


ROWS = [
    pytest.param(
        *row, id=row[0], marks=[] if row[0] in ("base", "(B) d_k 16") else pytest.mark.slow
    )
    for row in TABLE_3
]


@pytest.mark.parametrize(("row", "changes", "millions"), ROWS)
def test_parameters_of_table_3(row, changes, millions):
    counted = count(**changes)
    big = {"d_model": 1024, "d_ff": 4096, "num_heads": 16}
    sizes = big if row == "big" else dict(changes)
    # (E): two tables of max_length · d_model instead of the sinusoids.
    tables = 2 * sizes.pop("max_length") * 512 if sizes.pop("position", None) else 0
    assert counted == parameters(**sizes) + tables
    # The paper rounds its counts and its vocabulary ("about 37000").
    assert counted == pytest.approx(millions * 1e6, rel=0.07)


def test_parameters_of_base_and_big():
    assert count("base") == 63_045_632
    assert count("big") == 214_171_648
