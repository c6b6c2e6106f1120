#!/usr/bin/env bash
# OpusFilter: LangidFilter fails with the py3langid that pip installs beside it.
#
# Guess:  after `pip install opusfilter`, every filter whose packages are requirements works: opusfilter 3.3.1 requires
#         py3langid>=0.2.2.
# Seen:   LangidFilter, and LanguageIDFilter by default, end with "type object 'LanguageIdentifier' has no attribute
#         'from_pickled_model'". py3langid 0.4.0 reads its model with from_model_file. py3langid 0.3.0 works.
# With:   opusfilter 3.3.1, py3langid 0.4.0, Python 3.11, Linux on x86-64, 30 November 2026.
# Effect: a configuration with LangidFilter, the first choice of its documentation, needs an older py3langid.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > pair.py <<'PY'
from opusfilter.filters import LangidFilter

try:
    made = LangidFilter(languages=["en", "de"])
    (score,) = made.score([("Where is the next station?", "Wo ist der nächste Bahnhof?")])
    print("accepted:", made.accept(score))
except AttributeError as error:
    print("error:", error)
PY
python3 -m venv env
env/bin/pip install --quiet opusfilter==3.3.1 py3langid==0.4.0
env/bin/python pair.py | tee new
env/bin/pip install --quiet py3langid==0.3.0
env/bin/python pair.py | tee old
grep -q "error: .*from_pickled_model" new
grep -q "accepted: True" old
