#!/usr/bin/env bash
# SentencePiece: version 0.2.3 divides some numbers into other unigrams than the op of tensorflow-text.
#
# Guess:  a unigram model gives the same pieces in Python and in the op of a served graph: it is the same algorithm.
# Seen:   of divisions with equal sums of scores, such as 000 00 and 00 000, each takes another one: of 2,000 numbers
#         with zeros at their ends, 130. sentencepiece 0.2.1 agrees with the op on all of them.
# With:   sentencepiece 0.2.1 and 0.2.3, tensorflow-text 2.21.1, tensorflow 2.21.0, Python 3.11, Linux on x86-64,
#         30 November 2026.
# Effect: a model that was trained on pieces of the Python package reads other pieces where its graph is served, so
#         translations of such texts may differ. No error tells.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet sentencepiece==0.2.3 tensorflow-text==2.21.1 tensorflow==2.21.0
python3 -m venv earlier
earlier/bin/pip install --quiet sentencepiece==0.2.1
cat > pieces.py <<'PY'
import io
import json
import random

import sentencepiece

random.seed(2)


def number(most_zeros):
    return str(random.randrange(1, 10 ** random.randrange(1, 9))) + "0" * random.randrange(most_zeros)


def pieces(model, texts):
    return sentencepiece.SentencePieceProcessor(model_proto=model).encode(texts, out_type=str)


def train():
    lines = [f"{random.choice(['house', 'garden'])} {number(4)}" for _ in range(3000)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=200, model_type="unigram",
        num_threads=1, minloglevel=2,
    )
    with open("model", "wb") as file:
        file.write(model.getvalue())
    with open("texts", "w") as file:
        json.dump([number(9) for _ in range(2000)], file)
PY
env/bin/python -c 'import pieces; pieces.train()'
earlier/bin/python - <<'PY'
import json

from pieces import pieces

with open("earlier.json", "w") as file:
    json.dump(pieces(open("model", "rb").read(), json.load(open("texts"))), file)
PY
TF_CPP_MIN_LOG_LEVEL=3 env/bin/python - <<'PY'
import json

import sentencepiece
import tensorflow as tf
import tensorflow_text

from pieces import pieces

model, texts = open("model", "rb").read(), json.load(open("texts"))
in_python, earlier = pieces(model, texts), json.load(open("earlier.json"))
op = tensorflow_text.SentencepieceTokenizer(model, out_type=tf.string)
in_graph = [[piece.decode() for piece in row] for row in op.tokenize(texts).to_list()]
differ = [pair for pair in zip(in_python, in_graph) if pair[0] != pair[1]]
print(f"{len(differ)} of {len(texts)} numbers differ, for example", *differ[0], sep="\n  ")
print("sentencepiece 0.2.1 differs from the op in", sum(a != b for a, b in zip(earlier, in_graph)))
known = sentencepiece.SentencePieceProcessor(model_proto=model)
for pair in differ:
    one, other = (sum(known.get_score(known.piece_to_id(piece)) for piece in row) for row in pair)
    assert abs(one - other) < 1e-5, pair
assert differ and earlier == in_graph
PY
