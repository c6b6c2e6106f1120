"""Training with word alignments: it changes nothing when it is off, and teaches one head."""

import dataclasses
import functools

import numpy as np
import pytest
from conftest import small_config, weights_of
from training.test_update import assert_same, trained, unequal_batches

from tf_transformer.commands import align, command_line, train, translate
from tf_transformer.config import Corpus
from tf_transformer.data.readers.generated import generate
from tf_transformer.inference.translator import Translator
from tf_transformer.losses.guided_alignment import GuidedAlignment, alignment_loss
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.word_alignment import LINKS
from tf_transformer.training import trainer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two files, and links of the first words and of the last words."""
    folder, pairs = tmp_path_factory.mktemp("corpus"), generate(60, "en", "de", seed=1)
    sizes = [[len(text.split()) for text in pairs[side]] for side in ("source", "target")]
    links = [f"0-0 {source - 1}-{target - 1}" for source, target in zip(*sizes, strict=True)]
    paths = []
    for name, lines in (("a.en", pairs["source"]), ("a.de", pairs["target"]), ("links", links)):
        paths.append(str(folder / name))
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return Corpus(paths[0], paths[1], alignments=paths[2])


@pytest.fixture(scope="module")
def train_on(tmp_path_factory):
    """train_on(corpus, **options): the folder of a run after four updates."""

    def train_on(corpus, **options):
        values = {"data.corpora": (corpus,), "data.held_out": 5}
        values |= {f"train.{name}": value for name, value in options.items()}
        folder = tmp_path_factory.mktemp("run")
        trainer.train(Run.at(folder, small_config().with_options(values)))
        return folder

    return train_on


@pytest.mark.slow
def test_alignments_without_a_weight_change_no_bit(train_on, corpus):
    plain = weights_of(train_on(dataclasses.replace(corpus, alignments="")))
    unused = weights_of(train_on(corpus))
    guided = weights_of(train_on(corpus, guided_alignment_weight=0.5))
    assert_same(plain, unused, tolerance=0)
    assert any(np.any(one != other) for one, other in zip(plain, guided, strict=True))


def test_the_command_names_the_head_that_aligns_and_translations_use_it(corpus, tmp_path, capsys):
    words = ["--run_dir", str(tmp_path / "run"), "--data.held_out", "5", "--train.steps", "2"]
    words += ["--data.train_source", corpus.source, "--data.train_target", corpus.target]
    words += ["--data.train_alignments", corpus.alignments, "--train.guided_alignment_weight", "1"]
    words += ["--model.num_layers", "2", "--model.d_model", "16", "--model.num_heads", "2"]
    words += ["--data.vocabulary_size", "330", "--train.valid_score_examples", "0"]
    command_line.run(train.main, words)
    assert "--decode.alignment_layer -2, --decode.alignment_head 0" in capsys.readouterr().out
    decode = RunFolder(tmp_path / "run").load_config().decode
    assert (decode.alignment_layer, decode.alignment_head) == (-2, 0)
    pair = ["twenty-one"], ["einundzwanzig"]
    translator = Translator.from_run(tmp_path / "run")
    (alignment,) = translator.align(*pair)
    cross = {layers.kind: layers for layers in translator.attention(*pair)[0].maps}["cross"]
    np.testing.assert_allclose(alignment.weights, cross.weights[0, 0], atol=1e-5)
    mean = Translator.from_run(tmp_path / "run", alignment_layer=-1, alignment_head=-1)
    np.testing.assert_allclose(mean.align(*pair)[0].weights, cross.weights[1].mean(0), atol=1e-5)
    command_line.run(train.main, words)  # resumes with this head
    assert RunFolder(tmp_path / "run").load_config().decode.alignment_layer == -2


def reversed_batches(count):
    """Targets are sources in reverse, with links of the equal tokens."""
    for batch in unequal_batches(count, rows=8):
        source = batch["source"][:, :5]
        batch["source"] = source
        batch["target"] = np.where(source > 0, np.take_along_axis(source, order(source), 1), 0)
        places = order(source)
        links = np.stack([places, places + 1, *np.indices(source.shape)[1:], places * 0], -1)
        links[..., 3] = links[..., 2] + 1
        batch[LINKS] = (links * (source > 0)[..., None]).reshape(len(source), -1).astype(np.int32)
        yield batch


def order(source):
    """For each place of a row, the place in reverse without padding."""
    size = (source > 0).sum(1, keepdims=True)
    places = np.arange(source.shape[1])
    return np.where(places < size, size - 1 - places, places)


guided = functools.partial(GuidedAlignment, 0.1, layer=0, head=1)


def test_one_head_learns_the_links():
    batches = list(reversed_batches(60))
    source, target, links = batches[0].values()
    losses = {}
    for weight in (0.0, 1.0):
        _, _, updater = trained(batches=batches, loss=guided(weight=weight))
        run = updater.model.run((source, shift_right(target)))
        losses[weight] = float(alignment_loss(run.cross_attention[0][:, 1], links))
    assert losses[1.0] < 0.8 * losses[0.0]


@functools.cache
def of_whole_batches():
    """Weights and metrics after updates on one device, and the loss without alignments."""
    batches = list(reversed_batches(3))
    weights, metrics, _ = trained(batches=batches, loss=guided(weight=1.0))
    return weights, metrics, trained(batches=batches)[1]["loss"]


@pytest.mark.parametrize(
    "options",
    [
        {"micro_batches": 2},
        {"jit_compile": True, "micro_batches": 3},
        pytest.param({"strategy": "mirrored"}, marks=pytest.mark.slow),
    ],
)
def test_updates_are_the_same_however_a_batch_is_divided_and_compiled(options):
    whole, metrics, loss_without = of_whole_batches()
    batches = list(reversed_batches(3))
    weights, divided, _ = trained(batches=batches, loss=guided(weight=1.0), **options)
    assert_same(whole, weights)
    assert divided == pytest.approx(metrics, rel=1e-5)
    assert metrics["loss"] > loss_without + 0.1


def test_a_run_aligns_files_as_translate_does(run, corpus, tmp_path):
    files = {"source": corpus.source, "target": corpus.target}
    align.main(**files, output=str(tmp_path / "links"), run_dir=str(run))
    options = {"score_target": corpus.target, "alignments_output": str(tmp_path / "expected")}
    translate.main(str(run), input=corpus.source, output=str(tmp_path / "scores"), **options)
    links = (tmp_path / "links").read_text()
    assert links == (tmp_path / "expected").read_text()
    assert links.count("\n") == 60
