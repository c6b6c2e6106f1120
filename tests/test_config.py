import dataclasses

import numpy as np
import pytest
import yaml

from tf_transformer.config import (
    PRESETS,
    AugmentConfig,
    Config,
    Corpus,
    DataConfig,
    DecodeConfig,
    ImportedConfig,
    ModelConfig,
    TrainConfig,
)
from tf_transformer.config.task import ClassificationOptions, ParsingOptions, TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.registry import OPTIONS

# (class, options, what the error says)
BAD_OPTIONS = [
    *(
        (ModelConfig, {name: value}, f"model.{name} must be positive, got {value}.")
        for name in ("num_layers", "d_model", "d_ff", "num_heads", "max_length")
        for value in (0, -3)
    ),
    *(
        (ModelConfig, {name: value}, f"model.{name} must be at least 0 and below 1, got {value}.")
        for name in (
            "dropout_rate",
            "attention_dropout_rate",
            "feed_forward_dropout_rate",
            "layer_drop_rate",
        )
        for value in (-0.1, 1.0)
    ),
    (
        ModelConfig,
        {"d_model": 10, "num_heads": 3},
        "model.d_model (10) must be a multiple of model.num_heads (3), or model.key_dim and "
        "model.imported.value_dim must both be given.",
    ),
    (
        ModelConfig,
        {"d_model": 15, "num_heads": 3},
        "model.d_model must be even for sinusoidal positions, got 15.",
    ),
    (
        ModelConfig,
        {"encoder_num_heads": 5},
        "model.imported.encoder_d_model (128) must be a multiple of "
        "model.imported.encoder_num_heads (5), or model.key_dim and model.imported.value_dim must "
        "both be given.",
    ),
    (
        ModelConfig,
        {"d_model": 10, "num_heads": 2, "position": "rotary"},
        "rotary positions rotate pairs, so the size of a head must be even, but it is 5. Set "
        "model.key_dim and model.imported.value_dim, or another model.num_heads (2).",
    ),
    (
        ModelConfig,
        {"num_key_value_heads": 3},
        "model.num_heads (4) must be a multiple of model.num_key_value_heads (3).",
    ),
    (
        ModelConfig,
        {"num_key_value_heads": -1},
        "model.num_key_value_heads must not be negative, got -1.",
    ),
    (
        ModelConfig,
        {"max_relative_distance": 0},
        "model.max_relative_distance must be positive, got 0.",
    ),
    (
        ModelConfig,
        {"encoder_d_model": 64},
        "model.imported.encoder_d_model (64) and model.d_model (128) must be equal for "
        "model.tie_embeddings=all. Use target or none.",
    ),
    *(
        (DataConfig, {name: 0}, f"data.{name} must be positive, got 0.")
        for name in (
            "generated_pairs",
            "held_out",
            "vocabulary_size",
            "batch_tokens",
            "bucket_width",
        )
    ),
    (
        DataConfig,
        {"train_source": "a.en"},
        "data.train_source and data.train_target must be given together.",
    ),
    (
        DataConfig,
        {"train_source": "a.en", "train_target": "a.de", "valid_target": "v.de"},
        "data.valid_source and data.valid_target must be given together.",
    ),
    (
        DataConfig,
        {"valid_source": "v.en", "valid_target": "v.de"},
        "data.valid_corpora needs data.corpora, or a short form of it.",
    ),
    (
        DataConfig,
        {"train_source": "a.en", "train_target": "a.de", "tfds": "wmt14_translate/de-en"},
        "give data.train_file, data.train_source with data.train_target, or data.tfds: one of them "
        "only.",
    ),
    (
        DataConfig,
        {"corpora": [Corpus("a", "b")], "train_file": "c"},
        "give data.corpora, or a short form of one corpus (data.train_source and "
        "data.train_target, data.train_file, or data.tfds), not both.",
    ),
    (
        DataConfig,
        {"tfds": "x", "valid_corpora": [Corpus(path="a")], "tfds_valid_split": "test"},
        "give data.valid_corpora, or a short form of one corpus (data.valid_source and "
        "data.valid_target, data.valid_file, or data.tfds_valid_split), not both.",
    ),
    (
        DataConfig,
        {"valid_corpora": [Corpus(path="a")]},
        "data.valid_corpora needs data.corpora, or a short form of it.",
    ),
    (
        DataConfig,
        {"corpora": [Corpus()]},
        "a corpus needs source and target, path, or a name and a format.",
    ),
    (
        DataConfig,
        {"corpora": ["a"]},
        "data.corpora must be a list of corpora, like "
        "'[{source: a.en, target: a.de}, {path: b.tmx}]', got ['a'].",
    ),
    (
        Corpus,
        {"path": "a", "name": "b"},
        "a corpus has source and target, path, or name; got a, b. List them as separate corpora.",
    ),
    (
        DataConfig,
        {"batch_tokens": 100, "max_length": 101},
        "data.batch_tokens (100) must hold at least one sentence of data.max_length (101).",
    ),
    *(
        (TrainConfig, {name: 0}, f"train.{name} must be positive, got 0.")
        for name in ("epochs", "warmup_steps", "learning_rate", "keep_checkpoints")
    ),
    (
        TrainConfig,
        {"label_smoothing": 1.0},
        "train.label_smoothing must be at least 0 and below 1, got 1.0.",
    ),
    *(
        (DecodeConfig, {name: 0}, f"decode.{name} must be positive, got 0.")
        for name in (
            *("beam_size", "num_hypotheses", "batch_size", "batch_tokens", "average"),
            *("max_source_length", "max_length_ratio", "temperature"),
        )
    ),
    *(
        (cls, {name: -1}, f"{part}.{name} must not be negative, got -1.")
        for cls, part, names in (
            (DataConfig, "data", ("max_length",)),
            (ModelConfig, "model", ("key_dim", "num_encoder_layers")),
            (ImportedConfig, "model.imported", ("value_dim", "encoder_d_ff")),
            (TrainConfig, "train", ("steps", "validate_every", "valid_score_examples")),
            (
                DecodeConfig,
                "decode",
                (
                    *("length_penalty", "coverage_penalty", "max_extra_length", "max_length"),
                    *("min_length", "min_length_ratio", "no_repeat_ngram_size", "top_k"),
                ),
            ),
        )
        for name in names
    ),
    (
        DecodeConfig,
        {"num_hypotheses": 5},
        "decode.num_hypotheses (5) must be at most decode.beam_size (4): a beam finds no more.",
    ),
    (
        DecodeConfig,
        {"min_length": 5, "max_length": 4},
        "decode.min_length (5) must be at most decode.max_length (4).",
    ),
    (
        DecodeConfig,
        {"min_length_ratio": 2.0},
        "decode.min_length_ratio (2.0) must be at most decode.max_length_ratio (1.0).",
    ),
    (
        DecodeConfig,
        {"repetition_penalty": 0.5},
        "decode.repetition_penalty must be at least 1, got 0.5.",
    ),
    *(
        (DecodeConfig, {"top_p": p}, f"decode.top_p must be above 0 and at most 1, got {p}.")
        for p in (0.0, 1.5)
    ),
    (
        DecodeConfig,
        {"sampling": True, "coverage_penalty": 0.2},
        "decode.coverage_penalty ranks the hypotheses of a beam; it has no meaning with "
        "decode.sampling. Set one of them only.",
    ),
    (
        DecodeConfig,
        {"sampling": True, "second_search": True},
        "decode.second_search ranks the hypotheses of a beam; it has no meaning with "
        "decode.sampling. Set one of them only.",
    ),
    (
        DecodeConfig,
        {"length_penalty": -0.5},
        "decode.length_penalty must not be negative, got -0.5.",
    ),
    (
        Config,
        {"model": ModelConfig(position="learned", max_length=9), "data": DataConfig(max_length=10)},
        "data.max_length (10) must be at most model.max_length (9), the number of learned "
        "positions.",
    ),
]


@pytest.mark.parametrize(("cls", "options", "text"), BAD_OPTIONS)
def test_bad_option_is_an_error_that_names_it(cls, options, text):
    with pytest.raises(InputError) as error:
        cls(**options)
    assert str(error.value) == text


def test_limits_are_allowed():
    ModelConfig(dropout_rate=0.0, num_layers=1)
    ModelConfig(d_model=10, num_heads=3, key_dim=3, value_dim=5)
    ModelConfig(d_model=15, num_heads=3, position="learned")
    DataConfig(batch_tokens=100, max_length=100)
    DecodeConfig(length_penalty=0.0)
    Config(ModelConfig(position="learned", max_length=10), DataConfig(max_length=10))


SIZES = (
    "num_layers",
    "d_model",
    "d_ff",
    "num_heads",
    "key_dim",
    "value_dim",
    "num_key_value_heads",
)


def sizes_of(stack: ModelConfig) -> tuple[int, ...]:
    """The sizes of an encoder or decoder, in the order of `SIZES`."""
    return tuple(getattr(stack, name) for name in SIZES)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        # num_layers, d_model, d_ff, num_heads, key_dim, value_dim, key heads, dropout_rate
        ("base", (6, 512, 2048, 8, 64, 64, 8, 0.1)),  # paper Table 3
        ("big", (6, 1024, 4096, 16, 64, 64, 16, 0.3)),
        ("small", (4, 256, 1024, 4, 64, 64, 4, 0.1)),
        ("tiny", (4, 128, 256, 4, 32, 32, 4, 0.1)),
    ],
)
def test_presets_have_the_sizes_of_the_paper(name, sizes):
    config = ModelConfig.preset(name)
    assert sizes == (*sizes_of(config.decoder), config.dropout_rate)
    assert config.encoder == config.decoder
    # The paper's variants, at every size.
    assert (config.position, config.tie_embeddings) == ("sinusoidal", "all")
    assert config.norm_first is config.imported.attention_bias is False
    assert config.attention_dropout_rate == config.feed_forward_dropout_rate == 0


def test_a_changed_preset_does_not_change_the_original():
    changed = ModelConfig.preset("base", num_layers=2, norm_first=True)
    assert (changed.num_layers, changed.norm_first, changed.d_model) == (2, True, 512)
    assert ModelConfig.preset("base").num_layers == 6


def test_an_unknown_preset_is_an_error_that_lists_all():
    with pytest.raises(InputError) as error:
        ModelConfig.preset("huge")
    names = ["base", "big", "small", "tiny"]
    assert str(error.value) == f"unknown preset 'huge'; expected one of {names}."
    assert sorted(PRESETS) == names


@pytest.mark.parametrize("name", PRESETS)
def test_the_options_of_a_preset_are_all_that_it_sets(name):
    assert ModelConfig(**ModelConfig.preset_options(name)) == PRESETS[name]


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, (10, 10)), ({"key_dim": 7}, (7, 10)), ({"value_dim": 7}, (10, 7))],
)
def test_head_sizes_are_d_model_over_heads_unless_given(given, expected):
    config = ModelConfig(d_model=30, num_heads=3, **given)
    assert sizes_of(config.decoder)[4:6] == sizes_of(config.encoder)[4:6] == expected


def test_the_encoder_may_have_other_sizes_than_the_decoder():
    config = ModelConfig(
        num_layers=3,
        num_decoder_layers=1,
        encoder_d_model=64,
        encoder_d_ff=99,
        encoder_num_heads=2,
        tie_embeddings="target",
    )
    assert sizes_of(config.encoder) == (3, 64, 99, 2, 32, 32, 2)
    assert sizes_of(config.decoder) == (1, 128, 256, 4, 32, 32, 4)


@pytest.mark.parametrize("cls", [ModelConfig, DataConfig, TrainConfig, DecodeConfig, Config])
def test_a_config_cannot_be_changed(cls):
    name = dataclasses.fields(cls)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(cls(), name, 3)


CHANGED = Config(
    ModelConfig(d_model=30, num_heads=3, tie_embeddings="none", norm_first=True),
    DataConfig(train_source="Straße.en", train_target="b: #1.de", max_length=99),
    TrainConfig(learning_rate=0.5, seed=7),
    DecodeConfig(length_penalty=0.0, excluded_tokens=("▁foo", "b")),
)


def test_differences_name_the_fields_and_both_values():
    other = dataclasses.replace(CHANGED, train=TrainConfig(learning_rate=0.5, seed=8))
    assert CHANGED.differences(other) == {"train.seed": (7, 8)}
    assert other.differences(CHANGED) == {"train.seed": (8, 7)}
    assert CHANGED.differences(CHANGED) == {}
    other = dataclasses.replace(CHANGED, task="parsing")
    assert CHANGED.differences(other) == {"task": ("translation", "parsing")}
    free = dataclasses.replace(other, task=ParsingOptions(grammar=False))
    assert other.differences(free) == {"task.grammar": (True, False)}
    assert Config().differences(Config(ModelConfig(num_layers=2), decode=DecodeConfig(1))) == {
        "model.num_layers": (4, 2),
        "decode.beam_size": (4, 1),
    }


def test_there_are_at_most_136_options():
    """A new one needs a reason to stand beside them. Traits of imported models do not count.

    The last ones: `train.guided_alignment_weight`, and the head of alignments by
    `decode.alignment_layer` and `alignment_head`; `train.stages` and `data.prepared`; `data.clean`
    for rules, and `data.held_out_by`, with which earlier runs resume; `decode.split` and
    `split_language` for paragraphs, `keep` and `keep_as` for spans, `word_probabilities`,
    `data.temperature` for corpora of many sizes, `second_search` for faults, and for models that
    read terms `data.augment.terms` and `decode.terms_as`.
    """
    options = {
        (task if name.startswith("task.") else "", name)
        for task in OPTIONS
        for name, rules in Config(task=task).rules.items()
        if name != "task" and not name.startswith("model.imported.")
    }
    assert len(options) <= 136


# --- values of another type ------------------------------------------------------------------

GROUPS = {AugmentConfig: "data.augment", ImportedConfig: "model.imported"}
TASKS = (TranslationOptions, ParsingOptions, ClassificationOptions)
FIELDS = [
    (config, field.name, field.default)
    for config in (ModelConfig, DataConfig, TrainConfig, DecodeConfig, *GROUPS, *TASKS)
    for field in dataclasses.fields(config)
    if field.name not in ("augment", "imported")
]
OF_ANOTHER_TYPE = {
    bool: [None, 1, 0.0, "true", [True], float("nan")],
    int: [None, True, 2.0, "2", [2], b"2", float("nan"), 1 + 0j],
    float: [None, False, "0.1", [0.1], float("nan"), float("inf"), -float("inf"), 0.1 + 0j],
    str: [None, True, 1, 0.5, b"text", ["text"], ("text",)],
    tuple: [None, True, 1, "text", b"text", [1], {"text": "text"}, [None]],
}


@pytest.mark.parametrize(
    ("config", "name", "default"), FIELDS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_a_value_of_another_type_is_an_error_that_names_the_option(config, name, default):
    group = "task" if config in TASKS else config.__name__.removesuffix("Config").lower()
    option = f"{GROUPS.get(config, group)}.{name}"
    for value in OF_ANOTHER_TYPE[type(default)]:
        if (name == "jit_compile" and value is True) or (
            name in ("keep", "clean") and value == "text"
        ):
            continue  # they have two types
        with pytest.raises(InputError) as error:
            config(**{name: value})
        assert str(error.value).startswith(f"{option} must be "), (value, str(error.value))
        assert str(error.value).endswith(f"got {value!r}.")


def test_a_value_in_place_of_a_group_is_an_error():
    with pytest.raises(InputError, match=r"data\.augment must be a group of options, got 0\.5"):
        DataConfig(augment=0.5)


def test_numbers_of_numpy_and_lists_become_what_a_file_holds():
    config = Config(
        ModelConfig(d_model=np.int64(64), dropout_rate=np.float32(0.5)),
        task=ClassificationOptions(labels=["yes", "no"]),
        decode=DecodeConfig(average=np.int32(2), length_penalty=1),
    )
    assert hash(config) == hash(config)
    assert yaml.safe_load(yaml.safe_dump(dataclasses.asdict(config)))["model"]["d_model"] == 64
    assert config.task.labels == ("yes", "no")
    assert type(config.decode.average) is int


@pytest.mark.parametrize("part", ["model", "data", "train", "decode", "task"])
@pytest.mark.parametrize("value", [None, {}, 1, Config()])
def test_the_parts_of_a_configuration_are_configurations(part, value):
    with pytest.raises(InputError, match=f"^{part} must be a group of options, got "):
        Config(**{part: value})


@pytest.mark.parametrize(
    ("name", "kept"),
    [("train_source", "corpora"), ("valid_file", "valid_corpora"), ("generated_pairs", "corpora")],
)
def test_a_short_form_in_a_configuration_says_what_to_read(name, kept):
    data = dataclasses.replace(DataConfig(train_source="a", train_target="b"), held_out=5)
    assert data.corpora == (Corpus("a", "b"),)
    with pytest.raises(AttributeError, match=rf"does not keep data\.{name}; read data\.{kept}$"):
        getattr(data, name)
