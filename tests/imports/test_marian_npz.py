"""Models in Marian's own files; `fixtures/make_marian_npz.py` has stored what Marian computes."""

import json
import pathlib
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imports.marian_files import FIXTURES, edit_text, folder_at

from tf_transformer.commands import import_model
from tf_transformer.errors import InputError
from tf_transformer.imports import marian_npz
from tf_transformer.imports.layouts import marian
from tf_transformer.imports.marian_options import OPTIONS
from tf_transformer.imports.marian_vocabulary_file import read_vocabulary_file
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run
from tf_transformer.text.sentencepiece_file import read_pieces

BIAS = marian(norm_first=False, has_ssru=False).bias


def with_lists(folder):
    """Replaces the vocabularies of a folder by lists of tokens, as OPUS-MT has them."""
    for side in ("source", "target"):
        pieces = read_pieces((folder / f"{side}.spm").read_bytes())
        lines = [f"{json.dumps(piece.text)}: {i}\n" for i, piece in enumerate(pieces)]
        (folder / f"{side}.yml").write_text("".join(lines), "utf-8")
        edit_text("decoder.yml", f"- {side}.spm", f"- {side}.yml")(folder)


def edit_arrays(change):
    def edit(folder):
        path = folder / "model.npz"
        with np.load(path) as stored:
            arrays = dict(stored)
        np.savez(path, **change(arrays))

    return edit


def edit_options(old, new):
    """Changes a line in the options of the model."""

    def change(arrays):
        text = arrays[OPTIONS].tobytes()
        assert old.encode() in text
        changed = text.replace(old.encode(), new.encode())
        return arrays | {OPTIONS: np.frombuffer(changed, arrays[OPTIONS].dtype)}

    return edit_arrays(change)


@pytest.mark.parametrize(
    ("name", "change", "numbers"),
    [
        ("npz", lambda folder: None, "expected.json"),
        ("npz", with_lists, "expected.json"),
        ("npz", edit_text("decoder.yml", "model.npz", "small.npz"), "small.json"),
        ("npz_ssru", lambda folder: None, "expected.json"),
        ("npz_ssru_pre_norm", lambda folder: None, "expected.json"),
    ],
)
def test_translations_and_scores_are_those_of_marian(name, change, numbers, tmp_path):
    """With the small activations of small.npz, another ε would give other scores."""
    folder = folder_at(tmp_path / "model", name)
    change(folder)
    import_model.main(marian=str(folder), run_dir=str(tmp_path / "run"))
    translator = Translator.from_run(tmp_path / "run", beam_size=4, length_penalty=1.0)
    expected = json.loads((FIXTURES / name / numbers).read_text("utf-8"))
    found = translator([each["text"] for each in expected])
    # Marian's beam shrinks when a hypothesis ends, so a search may find another translation.
    equal = [each["translation"] == ours.text for each, ours in zip(expected, found, strict=True)]
    assert sum(equal) >= len(expected) - 1
    for each, ours, is_equal in zip(expected, found, equal, strict=True):
        if is_equal:
            assert ours.score == pytest.approx(each["score"], abs=1e-5)


def test_the_options_of_the_search_are_those_of_decoder_yml(tmp_path):
    decode = marian_npz.read(folder_at(tmp_path / "model")).config.decode
    assert (decode.beam_size, decode.length_penalty, decode.length_penalty_offset) == (12, 0, 0)
    assert decode.avoid_unknown
    assert (decode.max_length_ratio, decode.max_extra_length) == (3, 0)


def test_an_option_that_decoder_yml_does_not_have_is_that_of_marian_decoder(tmp_path):
    """The oracle: `addOptionsTranslation` in Marian 1.12.43."""
    folder = folder_at(tmp_path / "model")
    (folder / "decoder.yml").write_text("models: [model.npz]\nvocabs: [source.spm, target.spm]\n")
    decode = marian_npz.read(folder).config.decode
    assert (decode.beam_size, decode.length_penalty, decode.length_penalty_offset) == (12, 0, 0)
    assert (decode.max_length_ratio, decode.max_extra_length, decode.max_length) == (3, 0, 0)
    assert (decode.max_source_length, decode.avoid_unknown) == (1000, True)


def test_values_that_change_nothing_are_named(tmp_path, capsys):
    folder = folder_at(tmp_path / "model")
    edit_text("decoder.yml", "mini-batch: 32", "max-length: 70\nshortlist: [lex, 50]")(folder)
    edit_options("skip: false", "hop: false\nturns: 0\ntransformer-decoder-ffn-depth: 2")(folder)
    edit_options("postprocess: dan", "postprocess: an")(folder)
    import_model.main(marian=str(folder), run_dir=str(tmp_path / "run"))
    printed = capsys.readouterr().out
    assert "note: model.npz: not read, because their values change nothing: hop, turns" in printed
    assert "note: decoder.yml: not read: maxi-batch, maxi-batch-sort, shortlist" in printed
    assert Run.load(tmp_path / "run").config.decode.max_source_length == 70


def test_an_output_matrix_of_its_own_in_either_orientation(tmp_path):
    folder = folder_at(tmp_path / "model")
    edit_options("tied-embeddings: true", "tied-embeddings: false")(folder)
    tied = marian_npz.read(folder_at(tmp_path / "tied")).model
    for name, turn in (("W", np.transpose), ("Wt", np.asarray)):
        copy = pathlib.Path(shutil.copytree(folder, tmp_path / name))
        edit_arrays(
            lambda x, n=name, t=turn: x | {f"decoder_ff_logit_out_{n}": t(x["decoder_Wemb"])}
        )(copy)
        imported = marian_npz.read(copy)
        assert imported.config.model.tie_embeddings == "none"
        inputs = np.array([[5, 6, 2]]), np.array([[1, 7]])
        np.testing.assert_array_equal(imported.model(inputs), tied(inputs))


BROKEN = {
    "two files": (
        lambda x: [(x / "decoder.yml").rename(x / "a.decoder.yml"), (x / "b.decoder.yml").touch()],
        "got a.decoder.yml, b.decoder.yml",
    ),
    "another file": (
        edit_text("decoder.yml", "model.npz", "model.pt"),
        "models must name an .npz or .bin file, got model.pt",
    ),
    "an ensemble": (
        edit_text("decoder.yml", "  - model.npz", "  - model.npz\n  - b.npz"),
        "expected one file in models",
    ),
    "a word penalty": (
        edit_text("decoder.yml", "word-penalty: 0", "word-penalty: 1"),
        "word-penalty must be 0",
    ),
    "a beam of words": (edit_text("decoder.yml", "beam-size: 12", "beam-size: wide"), "got 'wide'"),
    "a negative penalty": (
        edit_text("decoder.yml", "normalize: 0", "normalize: -1"),
        "normalize must be a number of at least 0, got -1",
    ),
    "factors": (edit_text("decoder.yml", "source.spm", "source.fsv"), "factors are not supported"),
    "no weights": (lambda x: (x / "model.npz").unlink(), "is missing, cut short"),
    "cut short": (
        lambda x: (x / "model.npz").write_bytes((x / "model.npz").read_bytes()[:9000]),
        "is missing, cut short",
    ),
    "foreign arrays": (
        lambda x: np.savez(x / "model.npz", a=np.ones(2)),
        "has no special:model.yml",
    ),
    "another cell": (
        edit_options(
            "transformer-decoder-autoreg: self-attention", "transformer-decoder-autoreg: rnn"
        ),
        r"must be \('rnn', 'ssru', False\), got \('rnn', 'gru', False\)",
    ),
    "averages": (
        edit_options(
            "transformer-decoder-autoreg: self-attention",
            "transformer-decoder-autoreg: average-attention",
        ),
        "transformer-decoder-autoreg must be 'self-attention', or",
    ),
    "another kind": (edit_options("type: transformer\n", "type: s2s\n"), "type must be"),
    "lemma factors": (edit_options("lemma-dim-emb: 0", "lemma-dim-emb: 8"), "has factors"),
    "right to left": (edit_options("right-left: false", "right-left: true"), "right to left"),
    "an unknown option": (edit_options("skip: false", "hop: true"), "the key 'hop'"),
    "pre-norm of an early version": (
        lambda x: [
            edit_options('preprocess: ""', "preprocess: n")(x),
            edit_options("postprocess: dan", "postprocess: da")(x),
            edit_options('postprocess-top: ""', "postprocess-top: n")(x),
            edit_options("version: v1.12", "version: v1.9")(x),
        ],
        r"must be of Marian 1.11 or later, got v1\.9",
    ),
    "two norms": (
        edit_options('transformer-preprocess: ""', "transformer-preprocess: n"),
        r"must be \('', 'dan', ''\) or \('n', 'da', 'n'\), got \('n', 'dan', ''\)",
    ),
    "more layers": (edit_options("enc-depth: 2", "enc-depth: 3"), "have no encoder_l3_self_Wq"),
    "fewer layers": (
        edit_options("enc-depth: 2", "enc-depth: 1"),
        r"does not understand: encoder_l2_\w+ and 15 more\. Is it",
    ),
    "another activation": (edit_options("activation: relu", "activation: tanh"), "got 'tanh'"),
    "another size": (
        edit_options("dim-ffn: 24", "dim-ffn: 25"),
        r"shape \(16, 24\), and the configuration needs \(16, 25\)",
    ),
    "no bias": (
        edit_arrays(lambda x: {name: y for name, y in x.items() if name != BIAS}),
        f"have no {BIAS}",
    ),
    "NaN": (
        edit_arrays(lambda x: x | {BIAS: x[BIAS] * np.float32(np.nan)}),
        "values that are not finite",
    ),
    "another vocabulary": (edit_text("decoder.yml", "- source", "- target"), "must be from 0 to"),
    "subword-nmt": (
        lambda x: [with_lists(x), (x / "source.spm").rename(x / "source.bpe")],
        "subword-nmt are not supported",
    ),
    "no pieces": (lambda x: (x / "source.spm").unlink(), "source.spm cannot be read"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_folder_that_cannot_be_imported_is_an_error_and_leaves_nothing(fault, tmp_path):
    folder = folder_at(tmp_path / "model")
    make_fault, message = BROKEN[fault]
    make_fault(folder)
    with pytest.raises(InputError, match=message):
        import_model.main(marian=str(folder), run_dir=str(tmp_path / "runs" / "x"))
    assert not (tmp_path / "runs").exists()


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(0, 10**6)
    )
)
def test_a_list_of_tokens_keeps_all_texts(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.yml"
    lines = [f"{json.dumps(token, ensure_ascii=False)}: {i}\n" for token, i in ids.items()]
    path.write_bytes("".join(lines).encode())
    assert read_vocabulary_file(path) == ids


def test_forms_of_tokens_in_a_list(tmp_path):
    path = tmp_path / "vocab.yml"
    path.write_bytes(
        '</s>: 0\r\n"\\"": 1\n\'it\'\'s\': 2\n▁a: 3\n:: 4\n"\\u2028": 5\na\u0085b: 6\n'
        '? "long"\n: 7\n#: 8\n"\\\\n": 9\n'.encode()
    )
    expected = ["</s>", '"', "it's", "▁a", ":", "\u2028", "a\u0085b", "long", "#", "\\n"]
    assert read_vocabulary_file(path) == {token: i for i, token in enumerate(expected)}
    for content, message in (
        (b"a: 1\nb\n", r"line 2: expected a token and its id, like house: 17, got 'b'"),
        (b"a: 1\na: 2\n", "line 2: 'a' already has the id 1"),
        (b"\xff: 1\n", "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_vocabulary_file(path)
