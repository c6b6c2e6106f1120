"""Trains a small model with Marian itself, as OPUS-MT trains its models. Needs `pymarian`.

    python -m benchmarks.translations.marian_training --source train.en --target train.de --to DIR

`tf-transformer import --marian DIR` reads the folder.
"""

import pathlib

import sentencepiece
import yaml

from tf_transformer.commands import command_line

VOCABULARY = "vocabulary.spm"


def main(source: str, target: str, to: str, updates: int = 5000, threads: int = 2) -> None:
    """Writes Marian's weights, its vocabulary and decoder.yml.

    Args:
        source: file of sentences.
        target: file of their translations.
        to: folder for the files.
        updates: number of updates; the newest weights are written every 1,000 updates.
        threads: CPU threads.
    """
    from pymarian import Trainer

    folder = pathlib.Path(to).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = train_vocabulary([source, target], folder)
    Trainer(
        type="transformer",
        model=str(folder / "model.npz"),
        train_sets=[source, target],
        vocabs=[vocabulary] * 2,
        dim_vocabs=[6000, 6000],
        dim_emb=128,
        enc_depth=3,
        dec_depth=3,
        transformer_heads=4,
        transformer_dim_ffn=512,
        transformer_ffn_activation="swish",
        transformer_dropout=0.1,
        tied_embeddings_all=True,
        label_smoothing=0.1,
        mini_batch=128,
        maxi_batch=100,
        learn_rate=0.002,
        lr_warmup="600u",
        lr_decay_inv_sqrt="600u",
        exponential_smoothing=0.0005,
        optimizer_params=[0.9, 0.98, 1e-9],
        cpu_threads=threads,
        after_batches=updates,
        save_freq="1000u",
        overwrite=True,
        workspace=1500,
        seed=1,
    ).train()
    search = {"beam-size": 6, "normalize": 1.0, "word-penalty": 0}
    files = {"relative-paths": True, "models": ["model.npz"], "vocabs": [VOCABULARY] * 2}
    (folder / "decoder.yml").write_text(yaml.safe_dump(files | search), "utf-8")


def train_vocabulary(texts: list[str], folder: pathlib.Path) -> str:
    """Trains a SentencePiece model with Marian's ids, and returns its path."""
    path = folder / VOCABULARY
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            input=texts,
            model_writer=file,
            vocab_size=6000,
            bos_id=-1,
            eos_id=0,
            unk_id=1,
            normalization_rule_name="nmt_nfkc",
            character_coverage=1.0,
            minloglevel=2,
        )
    return str(path)


if __name__ == "__main__":
    command_line.run(main)
