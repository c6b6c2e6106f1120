#!/usr/bin/env bash
# SentencePiece: in 0.2.3, input_sentence_size makes each process train another vocabulary, whatever the seed.
#
# Guess:  the same text and options train the same vocabulary, at least behind set_random_generator_seed.
# Seen:   the lines that input_sentence_size chooses differ from process to process, with a seed, too. Within a
#         process, they are the same for any seed. sentencepiece 0.2.1 chooses the same lines in each process. Without
#         the option, or with shuffle_input_sentence=False, all processes train the same vocabulary.
# With:   sentencepiece 0.2.1 and 0.2.3, Python 3.11, Linux on x86-64, 30 November 2026.
# Effect: nobody can train a published vocabulary again, and two workers that each train one have different ids. Draw
#         the sample in your own program.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet sentencepiece==0.2.3
python3 -m venv earlier
earlier/bin/pip install --quiet sentencepiece==0.2.1
cat > train.py <<'PY'
import hashlib
import io
import random

import sentencepiece

random.seed(1)
lines = ["".join(random.choices("abcdefgh", k=6)) + f" {i}" for i in range(5000)]


def pieces(**options):
    """A hash of the pieces, in order."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=300, model_type="bpe",
        num_threads=1, minloglevel=2, **options,
    )
    trained = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    listed = [trained.id_to_piece(i) for i in range(len(trained))]
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:8]


found = {"all lines": pieces()}
for seed in (1, 2):
    sentencepiece.set_random_generator_seed(seed)
    found[f"1,000 lines, seed {seed}"] = pieces(input_sentence_size=1000)
found["the first 1,000 lines"] = pieces(input_sentence_size=1000, shuffle_input_sentence=False)
print(found)
PY
cat > compare.py <<'PY'
import ast
import subprocess
import sys

runs = [subprocess.run([sys.argv[1], "train.py"], check=True, capture_output=True) for _ in range(3)]
runs = [ast.literal_eval(run.stdout.decode()) for run in runs]
for name in runs[0]:
    print(f"  {name}:", *[run[name] for run in runs])
assert all(len({run[name] for run in runs}) == 1 for name in ("all lines", "the first 1,000 lines"))
assert all(run["1,000 lines, seed 1"] == run["1,000 lines, seed 2"] for run in runs)
assert len({run["1,000 lines, seed 1"] for run in runs}) == int(sys.argv[2])
PY
echo "sentencepiece 0.2.3, three processes:"
python3 compare.py env/bin/python 3
echo "sentencepiece 0.2.1, three processes:"
python3 compare.py earlier/bin/python 1
