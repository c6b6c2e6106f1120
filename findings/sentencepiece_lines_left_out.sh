#!/usr/bin/env bash
# SentencePiece: a training line that holds U+2585 (▅) is left out.
#
# Guess:  any text may be training text of a tokenizer; U+2581 (▁), the mark of a space, is the one special character.
# Seen:   the trainer keeps U+2585 for itself and leaves out each line that holds it. Characters of such lines alone
#         are then unknown, at character_coverage=1.0, too. With minloglevel=1 or more, no line says so.
# With:   sentencepiece 0.2.3, Python 3.11, Linux on x86-64, 28 November 2026.
# Effect: text with bars of block characters (progress bars, charts, weather reports) loses its words.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet sentencepiece==0.2.3
env/bin/python - <<'PY'
import io

import sentencepiece


def processor(lines):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=40, model_type="bpe",
        character_coverage=1.0, minloglevel=1,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def known(model):
    return [c for c in "qz" if model.piece_to_id(c) != model.unk_id()]


lines = [f"the small house {i}" for i in range(50)]
with_bar = known(processor([*lines, "quartz \u2585"] ))
with_another = known(processor([*lines, "quartz \u2586"]))
print("characters q and z known: with U+2585 in their line", with_bar, "with U+2586", with_another)
assert with_bar == [] and with_another == ["q", "z"]
PY
