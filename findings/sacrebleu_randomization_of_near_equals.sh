#!/usr/bin/env bash
# sacreBLEU: the randomization test calls two systems that differ in one line very different.
#
# Guess:  --paired-ar gives a p-value near 1 for two systems with nearly equal outputs.
# Seen:   a trial counts only if its difference is larger than the observed one. If one line differs, each swap gives
#         the observed difference, and never more, so the p-value is its least, 1 / (trials + 1). The share of swaps
#         with at least this difference, which is what a p-value is, is 1.
# With:   sacrebleu 2.6.0, Python 3.11, Linux on x86-64, 29 November 2026.
# Effect: a change of one sentence among a thousand is reported as significant. Count ties, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet sacrebleu==2.6.0
env/bin/python - <<'PY'
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

references = [f"the old house number {i} is small and stands beside the river" for i in range(50)]
baseline = [line.replace("small", "big") for line in references]
system = [references[0], *baseline[1:]]


systems = [("a", baseline), ("b", system)]
metrics = {"BLEU": BLEU(references=[references])}
scores = PairedTest(systems, metrics, [references], "ar", 1000)()[1]["BLEU"]
p_value = scores[1].p_value
print(f"one of 50 lines differs: p-value {p_value:.4f} by approximate randomization")
assert p_value < 0.002
PY
