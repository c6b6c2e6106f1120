"""The data folder: where relative paths of text files are looked for."""

import pytest

from tf_transformer import tasks
from tf_transformer.config import Config, Corpus, DataConfig
from tf_transformer.config.task import ClassificationOptions
from tf_transformer.data.corpora import VARIABLE, in_folder, own_file


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders with a.txt, b.txt and 0/c.txt: the working folder has only a.txt."""
    for folder in ("work", "corpora/0"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("work/a.txt", "corpora/a.txt", "corpora/b.txt", "corpora/0/c.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a.txt", "a.txt"),  # it is in the working folder
        ("b.txt", "{}/corpora/b.txt"),
        ("none.txt", "{}/corpora/none.txt"),
        ("{}/none.txt", "{}/none.txt"),
        ("a.txt, b.txt", "a.txt,{}/corpora/b.txt"),
        ("[0-1]/*.txt", "{}/corpora/[0-1]/*.txt"),
        ("[a-b].txt", "[a-b].txt"),
        ("", ""),
    ],
)
def test_the_environment_names_a_folder_for_files_that_are_not_here(
    folders, monkeypatch, given, expected
):
    monkeypatch.setenv(VARIABLE, str(folders / "corpora"))
    data = in_folder(DataConfig(train_file=given.format(folders)))
    assert own_file(data.corpora) == expected.format(folders)


def test_the_option_counts_more_than_the_environment_and_the_working_folder(folders, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(folders / "none"))
    paths = {"train_source": "a.txt", "train_target": "b.txt"}
    data = in_folder(DataConfig(folder="../corpora", **paths))
    assert data.corpora == (Corpus("../corpora/a.txt", "../corpora/b.txt"),)


def test_files_of_corpora_are_in_the_folder(folders):
    corpora = (
        Corpus("a.txt", "b.txt"),
        Corpus(path="c.tmx"),
        Corpus(name="x/de-en", format="tfds"),
    )
    data = in_folder(DataConfig(folder="d", corpora=corpora, valid_corpora=corpora[:1]))
    assert data.corpora == (Corpus("d/a.txt", "d/b.txt"), Corpus(path="d/c.tmx"), corpora[2])
    assert data.valid_corpora == data.corpora[:1]


def test_without_either_paths_stay_as_they_are(folders):
    data = DataConfig(train_file="b.txt")
    assert in_folder(data) == data


TABLE = "".join(f"text {n}\t{n % 2}\n" for n in range(30))
TREES = "".join(f"(S (NP (NN dog{n})) (VP (VBZ barks)))\n" for n in range(30))
FILES = {
    "language_modeling": (TABLE, None),
    "masked_language_modeling": (TABLE, None),
    "parsing": (TREES, None),
    "classification": (TABLE, ClassificationOptions(text_columns=("1",), label_column="2")),
}


@pytest.mark.parametrize("task", FILES)
def test_every_task_reads_files_of_the_folder(folders, task):
    text, own = FILES[task]
    (folders / "corpora" / "train.txt").write_text(text)
    data = DataConfig(folder="../corpora", train_file="train.txt")
    kind = tasks.get(task)
    config = kind.complete(Config(data=data, task=own or task))
    assert own_file(config.data.corpora) == "train.txt"
    train, valid = kind.load_splits(config)
    assert len(train.read()) + len(valid) == 30


def test_pairs_are_read_from_the_folder(folders):
    data = DataConfig(
        folder="../corpora",
        **{"train_source": "a.txt", "train_target": "b.txt"},
        **{"valid_source": "b.txt", "valid_target": "0/c.txt"},
    )
    train, valid = tasks.get("translation").load_splits(Config(data=data))
    assert list(train) == [("corpora/a.txt", "corpora/b.txt")]
    assert (valid["source"], valid["target"]) == (["corpora/b.txt"], ["corpora/0/c.txt"])
