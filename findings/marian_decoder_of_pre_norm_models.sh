#!/usr/bin/env bash
# Marian: its decoder computes pre-norm models with self-attention otherwise than its training and its scorer do.
#
# Guess:  the score that the decoder prints for a translation is the one that the scorer gives it.
# Seen:   with the default, post-norm, both are equal, and a model that learned to copy copies. With preprocess n,
#         postprocess da and postprocess-top n, the scores differ, and the decoder does not copy. `LayerAttention`
#         normalizes keys and values only where they are the tensor of the queries. A step of decoding passes the
#         earlier positions, too, and so a tensor without the norm.
# With:   pymarian 1.12.42, Python 3.11, Linux on x86-64, 29 November 2026.
# Effect: Marian's translations of such a model cannot check another program; scores of whole translations can.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet pymarian==1.12.42 numpy==2.4.6
env/bin/python - 2> log <<'PY' || { tail -n 20 log; exit 1; }
import pathlib
import random
import subprocess

from pymarian import Trainer, Translator

random.seed(1)
lines = [" ".join(random.choices("abcdefgh", k=random.randint(2, 6))) for _ in range(4000)]
pathlib.Path("text").write_text("\n".join(lines) + "\n")
VOCABULARIES = ["source.yml", "target.yml"]
PRE_NORM = {
    "transformer_preprocess": "n",
    "transformer_postprocess": "da",
    "transformer_postprocess_top": "n",
}


def decoded_and_scored(name, options):
    """How many of 50 texts the decoder copies, and the largest difference of two scores."""
    Trainer(
        type="transformer", model=name, train_sets=["text", "text"], vocabs=VOCABULARIES,
        dim_emb=32, enc_depth=1, dec_depth=1, transformer_heads=2, transformer_dim_ffn=64,
        tied_embeddings=True, mini_batch=64, learn_rate=0.005, cpu_threads=1, workspace=500,
        after_batches=600, seed=1, **options,
    ).train()
    translator = Translator(
        models=name, vocabs=VOCABULARIES, n_best=True, beam_size=1, mini_batch=1, cpu_threads=1
    )
    texts = lines[:50]
    best = [translator.translate(text).split("\n")[0].split(" ||| ") for text in texts]
    translations, scores = [row[1] for row in best], [float(row[-1]) for row in best]
    pathlib.Path("found").write_text("\n".join(translations) + "\n")
    command = ["env/bin/pymarian", "score", "-m", name, "-v", *VOCABULARIES, "-t", "text50", "found"]
    command += ["--cpu-threads", "1", "--quiet", "--max-length", "1000"]
    pathlib.Path("text50").write_text("\n".join(texts) + "\n")
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    scored = [float(line.split()[-1]) for line in output.splitlines()]
    copied = sum(text == found for text, found in zip(texts, translations, strict=True))
    return copied, max(abs(a - b) for a, b in zip(scores, scored, strict=True))


copied, difference = decoded_and_scored("post.npz", {})
print(f"post-norm: {copied} of 50 copied, scores differ by at most {difference:.4f}")
assert copied > 45
assert difference < 0.01
copied, difference = decoded_and_scored("pre.npz", PRE_NORM)
print(f"pre-norm: {copied} of 50 copied, scores differ by up to {difference:.4f}")
assert difference > 0.1
PY
