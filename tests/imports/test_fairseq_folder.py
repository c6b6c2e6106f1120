"""Transformers of fairseq; `fixtures/make_fairseq.py` has stored what fairseq computes.

Only the last tests read a real checkpoint, which needs PyTorch. The others read its content.
"""

import argparse
import importlib.util
import json
import pathlib
import shutil

import numpy as np
import pytest

from tf_transformer.commands import import_model
from tf_transformer.errors import InputError
from tf_transformer.imports import fairseq_folder
from tf_transformer.inference.translator import Translator

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"


def folder_of(name, to):
    """A copy of a stored folder with the SentencePiece models and an empty checkpoint."""
    folder = pathlib.Path(shutil.copytree(FIXTURES / "fairseq" / name, to))
    for side in ("source", "target"):
        shutil.copy(FIXTURES / "marian" / f"{side}.spm", folder)
    (folder / "model.pt").touch()
    return folder


def stored_in(folder):
    """The options and the weights of a folder."""
    options = json.loads((folder / "options.json").read_text("utf-8"))
    with np.load(folder / "weights.npz") as arrays:
        return options, dict(arrays)


def earlier(options, arrays):
    """A checkpoint of fairseq 0.9 or older: one object with all options."""
    return {"args": argparse.Namespace(**options), "cfg": None, "model": arrays}


def newer(options, arrays):
    """A checkpoint of fairseq 0.10 or newer: options in groups."""
    model = {"_name": "transformer"}
    for key, value in options.items():
        side, _, rest = key.partition("_")
        if side in ("encoder", "decoder"):
            model.setdefault(side, {})[rest] = value
        elif key not in ("arch", "source_lang", "target_lang"):
            model[key] = value
    task = {f"{side}_lang": options[f"{side}_lang"] for side in ("source", "target")}
    return {"args": None, "cfg": {"model": model, "task": task}, "model": arrays}


def use(monkeypatch, content):
    monkeypatch.setattr(fairseq_folder, "load_torch", lambda path, classes: content)


def expect_scores(translator, folder):
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    scores = translator.score(expected["sources"], expected["targets"])
    found = [score.log_probability for score in scores]
    np.testing.assert_allclose(found, expected["log_probabilities"], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("name", "form"), [("untied", earlier), ("shared", newer)])
def test_log_probabilities_are_those_of_fairseq(name, form, monkeypatch, tmp_path):
    folder = folder_of(name, tmp_path / "model")
    use(monkeypatch, form(*stored_in(folder)))
    import_model.main(fairseq=str(folder), run_dir=str(tmp_path / "run"))
    translator = Translator.from_run(tmp_path / "run")
    expect_scores(translator, folder)
    config = translator.model.config
    is_shared = name == "shared"
    assert (config.norm_first, config.activation) == (is_shared, "gelu")
    assert config.tie_embeddings == ("all" if is_shared else "none")
    assert config.dropout_rate == 0.3


def test_an_option_that_is_off_may_be_null_or_empty(monkeypatch, tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    options, arrays = stored_in(folder)
    expected = fairseq_config(folder, options, arrays, monkeypatch)
    for off in (None, "", 0):
        changed = options | dict.fromkeys(fairseq_folder.OFF, off)
        assert fairseq_config(folder, changed, arrays, monkeypatch) == expected


def fairseq_config(folder, options, arrays, monkeypatch):
    use(monkeypatch, earlier(options, arrays))
    return fairseq_folder.read(folder).config


def test_weights_of_older_versions_have_another_output(monkeypatch, tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    options, arrays = stored_in(folder)
    arrays["decoder.embed_out"] = arrays.pop("decoder.output_projection.weight")
    arrays["encoder.embed_positions._float_tensor"] = np.zeros(1, np.float32)
    use(monkeypatch, earlier(options, arrays))
    imported = fairseq_folder.read(folder)
    translator = Translator(imported.model, imported.codec, imported.config.decode)
    expect_scores(translator, folder)


def test_the_sentencepiece_models_may_stand_elsewhere(monkeypatch, tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    use(monkeypatch, earlier(*stored_in(folder)))
    moved = [str((folder / f"{x}.spm").rename(tmp_path / x)) for x in ("source", "target")]
    run_dir = str(tmp_path / "run")
    import_model.main(fairseq=str(folder), tokenizer=",".join(moved), run_dir=run_dir)
    expect_scores(Translator.from_run(run_dir), folder)


EMBEDDING = "decoder.embed_tokens.weight"
FC1 = "encoder.layers.1.fc1.weight"
NORM = "decoder.layers.0.final_layer_norm.weight"
OUTPUT = "decoder.output_projection.weight"


@pytest.mark.parametrize(
    ("options", "weights", "message"),
    [
        ({"arch": "lstm"}, {}, "is a lstm. Only a transformer"),
        ({"arch": "transformer_lm"}, {}, "is a transformer_lm"),
        ({"encoder_learned_pos": True}, {}, "encoder_learned_pos must be False, got True"),
        ({"no_scale_embedding": True}, {}, "no_scale_embedding must be False"),
        ({"target_lang": None}, {}, "target_lang must be a language, got None"),
        ({"encoder_layers": "two"}, {}, "encoder_layers must be an integer"),
        ({"activation_fn": "tanh"}, {}, "activation_fn must be one of .*, got 'tanh'"),
        ({"dropout": "some"}, {}, "dropout must be a number"),
        ({"encoder_normalize_before": True}, {}, "decoder_normalize_before must be equal"),
        ({"decoder_embed_dim": 8}, {}, f"{EMBEDDING} must be a matrix for size 8"),
        ({"encoder_layers": 3}, {}, "have no encoder.layers.2.self_attn.q_proj.weight"),
        ({"encoder_layers": 1}, {}, "does not understand: encoder.layers.1"),
        ({}, {EMBEDDING: None}, f"{EMBEDDING} must be a matrix for size 16, got nothing"),
        ({}, {OUTPUT: None}, f"must have {OUTPUT}"),
        ({}, {OUTPUT: np.ones((3, 16), np.float32)}, f"must have {OUTPUT} with"),
        ({}, {FC1: np.ones((3, 16), np.float32)}, rf"{FC1} has the shape \(3, 16\), and the"),
        ({}, {NORM: np.full(16, np.inf, np.float32)}, f"{NORM} has values that are not finite"),
        ({}, {NORM: None}, f"model.pt: the weights have no {NORM}"),
    ],
)
def test_another_model_is_an_error(options, weights, message, monkeypatch, tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    own_options, arrays = stored_in(folder)
    arrays = {name: x for name, x in (arrays | weights).items() if x is not None}
    use(monkeypatch, earlier(own_options | options, arrays))
    with pytest.raises(InputError, match=message):
        import_model.main(fairseq=str(folder), run_dir=str(tmp_path / "runs" / "x"))
    assert not (tmp_path / "runs").exists()


def edit_text(name, old, new):
    def edit(folder):
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), "utf-8")

    return edit


BROKEN = {
    "no folder": (shutil.rmtree, "--fairseq .* is not a folder"),
    "no checkpoint": (lambda x: (x / "model.pt").unlink(), "must have one .pt file"),
    "two checkpoints": (lambda x: (x / "b.pt").touch(), "got b.pt, model.pt"),
    "no dictionary": (lambda x: (x / "dict.de.txt").unlink(), "dict.de.txt cannot be read"),
    "no frequency": (edit_text("dict.en.txt", "▁the 1", "▁the"), "line 4: expected a token and"),
    "fewer tokens": (edit_text("dict.en.txt", "▁the 1\n", ""), "dict.en.txt has .* tokens, and"),
    "a token twice": (edit_text("dict.en.txt", "▁the 1", "s 1"), "has the token 's' twice"),
    "no pieces": (lambda x: (x / "target.spm").unlink(), "has no SentencePiece model"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_folder_that_cannot_be_imported_is_an_error(fault, monkeypatch, tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    use(monkeypatch, earlier(*stored_in(folder)))
    make_fault, message = BROKEN[fault]
    make_fault(folder)
    with pytest.raises(InputError, match=message):
        import_model.main(fairseq=str(folder), run_dir=str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_the_best_of_several_checkpoints_is_read(monkeypatch, tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    for name in ("checkpoint_best.pt", "a.pt"):
        (folder / name).touch()
    content, paths = earlier(*stored_in(folder)), []
    monkeypatch.setattr(
        fairseq_folder, "load_torch", lambda path, classes: paths.append(path) or content
    )
    fairseq_folder.read(folder)
    assert paths == [folder / "checkpoint_best.pt"]


@pytest.mark.parametrize("content", [[], {"rows": 1}, {"model": [1]}])
def test_a_foreign_file_is_an_error(content, monkeypatch, tmp_path):
    use(monkeypatch, content)
    with pytest.raises(InputError, match="so it is no checkpoint of fairseq"):
        fairseq_folder.read(folder_of("untied", tmp_path / "model"))


def test_without_pytorch_the_error_names_it(monkeypatch, tmp_path):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else find(name)
    )
    with pytest.raises(InputError, match=r"model.pt needs PyTorch.*pip install torch"):
        fairseq_folder.read(folder_of("untied", tmp_path / "model"))


class Foreign:
    """A class that the loader of weights does not know."""


@pytest.mark.parametrize("form", [earlier, newer])
def test_a_real_checkpoint_is_read(form, tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch: pip install torch")
    folder = folder_of("untied", tmp_path / "model")
    options, arrays = stored_in(folder)
    tensors = {name: torch.tensor(array) for name, array in arrays.items()}
    torch.save(form(options, tensors), folder / "model.pt")
    imported = fairseq_folder.read(folder)
    expect_scores(Translator(imported.model, imported.codec, imported.config.decode), folder)


def test_a_checkpoint_with_code_or_cut_short_is_an_error(tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch: pip install torch")
    folder = folder_of("untied", tmp_path / "model")
    for content in (b"PK\x03\x04", b""):
        (folder / "model.pt").write_bytes(content)
        with pytest.raises(InputError, match=r"model\.pt cannot be read"):
            fairseq_folder.read(folder)
    torch.save({"model": {}, "args": Foreign()}, folder / "model.pt")
    with pytest.raises(InputError, match=r"model\.pt cannot be read"):
        fairseq_folder.read(folder)
