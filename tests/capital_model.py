"""A stand-in for the model of a server, which answers in capitals."""

import re
import threading

from tf_transformer.errors import InputError
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.predictor import Prediction
from tf_transformer.run.directions import Direction
from tf_transformer.serving.models import Control, Field, TextModel


class Upper(TextModel):
    """It answers in capitals, then in capitals backwards, when it is let go."""

    name = "upper"
    directions = (Direction("en", "de"),)
    limits = "It only shouts."
    can_align = True
    keeps_tags = False
    controls = {  # noqa: RUF012
        "beam_size": Control("Beam size", 4, 1, 10, 1),
        "length_penalty": Control("Length penalty", 0.6, 0, 2, 0.1),
    }
    fields = {  # noqa: RUF012
        "prefix": Field("Start", "prefixes", ()),
        "language": Field("Language", "languages", [">>deu<<", ">>nld<<"]),
        "terms": Field("Terms", "terms", ()),
    }

    def __init__(self):
        self.batches = []
        self.options = ()  # of the last batch
        self.go = threading.Event()
        self.go.set()

    def n_best(self, texts, options):
        self.go.wait(10)
        self.batches.append(list(texts))
        self.options = options
        if "unreachable" in texts:
            raise InputError("no answer from the model.")
        if "defect" in texts:
            raise ZeroDivisionError
        return [
            [
                Prediction(self.best(text), -1.0, (Notice.LENGTH_LIMIT,) * (len(text) > 50)),
                Prediction(text.upper()[::-1], -2.0),
            ]
            for text in texts
        ]

    def best(self, text):
        return text.upper()

    def align(self, pairs, options=()):
        return [[[len(text), len(prediction), *options]] for text, prediction in pairs]


class UpperBetweenTags(Upper):
    """The same, with each tag as it was."""

    keeps_tags = True

    def best(self, text):
        pieces = re.split("(<[^>]*>)", text)
        pieces[::2] = [piece.upper() for piece in pieces[::2]]
        return "".join(pieces)
