"""The options of the search for predictions."""

from dataclasses import dataclass
from typing import Literal

from tf_transformer.config.option import (
    EACH_FORMAT,
    Effect,
    at_least_one,
    check,
    int32,
    not_negative,
    positive,
    probability,
    search,
    select,
)
from tf_transformer.errors import InputError

DType = Literal["float32", "bfloat16", "int8"]
Quantization = Literal["float32", "bfloat16", "float16", "int8", "int8_float16"]
CT2, MARIAN, MARIAN_NPZ = EACH_FORMAT
TEXTS, CHOICE, SPEED = Effect
REQUIRED = "required"  # as the target tag: each text has its own


@dataclass(frozen=True)
class DecodeConfig:
    """How the model makes predictions (paper section 6.1).

    The longest length counts target tokens with the end token. A prediction that reaches it without
    an end token is marked as truncated. The shortest length counts tokens of text only.

    Attributes:
        beam_size: hypotheses per sentence (W); 1: greedy search.
        length_penalty: α of ((c + length) / (c + 1))^α, which divides log-probabilities.
        length_penalty_offset: c of the length penalty. 5: the paper's penalty. 0: length^α, as
            in Transformers and Marian.
        early_stopping: the end of a sentence's beam search, as in Transformers. true: beam_size
            hypotheses are finished. false: the worst of them also scores better than the best live
            hypothesis. never: it also scores better than any continuation can.
        coverage_penalty: β of the penalty on source tokens with little attention (Wu et al. 2016,
            equation 14); 0: no penalty.
        num_hypotheses: predictions per sentence (N). A beam search gives at most beam_size.
        distinct: give only predictions with different texts. Of hypotheses with equal texts, the
            best is kept, so a sentence may have fewer than num_hypotheses.
        max_extra_length: longest output = input tokens × max_length_ratio + this. Both sides
            count the end token.
        max_length_ratio: longest output = input tokens × this + max_extra_length.
        max_length: longest output in tokens for any input, with the end token; 0: no such limit.
        min_length: shortest output in tokens, without the end token. The limits on the longest
            output come first.
        min_length_ratio: shortest output = input tokens × this. Neither side counts the end token.
        no_repeat_ngram_size: no sequence of this many tokens occurs twice; 0: no such rule.
        repetition_penalty: factor on the log-probabilities of tokens that the prediction already
            has; 1: none.
        excluded_tokens: pieces of the vocabulary that no prediction may contain.
        keep: spans that stand in each translation as in its text: addresses, tags, placeholders,
            units, emoji; common: all of them. Anything else is a regular expression of the user,
            which RE2 reads. Spans that the model loses or changes are put back by its attention.
            Tags of elements with content, such as <b>, are not read by the model.
        keep_as: what the model reads in place of the first 16 other spans. text: the spans.
            emoji: an emoji for each, which models copy that were trained with data.augment.copy;
            such a training sets it.
        terms_as: constraint: the search puts the translations of terms in as they are given. text:
            the model reads them behind their phrases, and may inflect them. For models that were
            trained with data.augment.terms, which sets it. both: the model reads them, and the
            search puts them in.
        target_tag: target language of a model for several languages, like >>por<< or por, for
            inputs without a tag and without a language of their own. Training adds it, too.
            required: an input without any is an error. A model whose training text always had
            one of several tags has this value in place of an empty one.
        punctuation: kept: inputs stay as they are. opus: quotation marks, dashes, full-width forms
            and spaces become ASCII, as in the training texts of OPUS-MT's models. Also in training.
        split: none: an input is predicted as a whole. sentences: a translator divides an input
            into sentences, and joins their translations with the spaces and line breaks of the
            input. A sentence longer than max_source_length, or than each line of the training
            text, is divided at clauses. The score is the mean of the scores of the parts. An input
            with a prefix stays whole.
        split_language: language of the inputs for split, such as en, whose abbreviations end no
            sentence. Empty: the source language of the run; if it is unknown, the abbreviations
            of all known languages.
        avoid_unknown: exclude the unknown token, too.
        sampling: draw tokens at random. If false, search for the likeliest prediction.
        temperature: for sampling; below 1, likely tokens become likelier.
        top_k: for sampling; draw only from the k likeliest tokens; 0: from all.
        top_p: for sampling; draw only from the likeliest tokens that together reach this
            probability.
        seed: for sampling; equal seeds draw equal predictions for a sentence in any batch.
        word_probabilities: a translator also gives the probability of each word of a translation.
            It costs one more run of the model over each translation.
        alignment_layer: layer of the decoder whose attention to the source aligns words, from 0, or
            from the last with -1. A training with guided alignment sets it.
        alignment_head: head of this layer, from 0; -1: the mean of all heads.
        second_search: a translator searches again for a text whose translation has the notice
            empty, numbers, loop or length_ratio. The search repeats no three tokens, gives at least
            half as many tokens as the text has, and keeps its numbers. Of both translations, the
            one with fewer of these notices counts.
        max_source_length: longest input in tokens; the rest is cut off. A language model keeps the
            last tokens of a prompt, and scores long texts in windows of this size.
        trained_source_length: longest line of the training text in tokens, with the end token. A
            training sets it. The commands and the demo report a longer input. 0: unknown, no
            report.
        batch_size: most sentences in a batch.
        batch_tokens: most input tokens in a batch, with padding.
        parallel_batches: batches that run in parallel, each with one CPU thread. 1: one batch with
            all threads. 0: one batch per core. In an export: parts of a batch that run in
            parallel; 0: one part.
        average: number of the newest checkpoints whose weights are averaged. best: the checkpoint
            with the best validation score. ema: the moving average of all updates.
    """

    beam_size: int = search(4, positive, int32, off=TEXTS, formats=EACH_FORMAT, common=True)
    length_penalty: float = search(0.6, not_negative, off=TEXTS, formats=EACH_FORMAT, common=True)
    length_penalty_offset: float = search(5.0, not_negative, off=0.0, formats=(CT2,))
    early_stopping: bool | Literal["never"] = search(True, off=TEXTS, formats=(MARIAN,))
    coverage_penalty: float = search(0.0, not_negative, off=0.0)
    num_hypotheses: int = search(1, positive, int32, off=CHOICE, common=True)
    distinct: bool = search(True, off=CHOICE, formats=(CT2,))
    max_extra_length: int = search(50, not_negative, int32, off=0, greedy=True, formats=(CT2,))
    max_length_ratio: float = search(
        1.0, positive, off=TEXTS, greedy=True, formats=(CT2, MARIAN_NPZ)
    )
    max_length: int = search(0, not_negative, int32, off=0, greedy=True, formats=(CT2, MARIAN))
    min_length: int = search(0, not_negative, int32, off=0, formats=(CT2,))
    min_length_ratio: float = search(0.0, not_negative, off=0.0, formats=(CT2,))
    no_repeat_ngram_size: int = search(0, not_negative, int32, off=0, formats=(CT2,))
    repetition_penalty: float = search(1.0, at_least_one, off=1.0)
    excluded_tokens: tuple[str, ...] = search((), off=(), formats=(CT2,))
    keep: tuple[str, ...] | str = search((), off=(), formats=(CT2,), common=True)
    keep_as: Literal["text", "emoji"] = search("text", off=CHOICE, formats=(CT2,))
    terms_as: Literal["constraint", "text", "both"] = search("constraint", off=CHOICE)
    target_tag: str = search("", off="", on_resume="fixed", greedy=True, formats=(CT2,))
    punctuation: Literal["kept", "opus"] = search(
        "kept", off="kept", on_resume="fixed", greedy=True, formats=(CT2,)
    )
    split: Literal["none", "sentences"] = search("none", off="none", formats=(CT2,), common=True)
    split_language: str = search("", off=CHOICE, formats=(CT2,))
    avoid_unknown: bool = search(False, off=False, formats=(CT2, MARIAN_NPZ))
    sampling: bool = search(False, off=False, common=True)
    temperature: float = search(1.0, positive, off=CHOICE, common=True)
    top_k: int = search(0, not_negative, int32, off=CHOICE)
    top_p: float = search(1.0, probability, off=CHOICE)
    seed: int = search(0, off=CHOICE)
    word_probabilities: bool = search(False, off=CHOICE)
    alignment_layer: int = search(-1, int32, off=CHOICE, on_resume="fixed")
    alignment_head: int = search(-1, int32, off=CHOICE, on_resume="fixed")
    second_search: bool = search(False, off=False)
    max_source_length: int = search(
        1024, positive, int32, off=TEXTS, greedy=True, formats=EACH_FORMAT, common=True
    )
    trained_source_length: int = search(0, not_negative, off=SPEED, formats=(CT2,))
    batch_size: int = search(64, positive, int32, off=SPEED, common=True)
    batch_tokens: int = search(4096, positive, int32, off=SPEED)
    parallel_batches: int = search(0, not_negative, int32, off=SPEED)
    average: int | Literal["best", "ema"] = search(
        5, positive, from_origin="free", off=CHOICE, common=True
    )

    def __post_init__(self) -> None:
        check(self, "decode")
        if self.target_tag not in ("", REQUIRED) and not self.target_tag.startswith(">>"):
            object.__setattr__(self, "target_tag", f">>{self.target_tag}<<")
        if isinstance(self.keep, str):  # one text stands for a list of it
            object.__setattr__(self, "keep", (self.keep,) if self.keep else ())
        if not self.sampling and self.num_hypotheses > self.beam_size:
            raise InputError(
                f"decode.num_hypotheses ({self.num_hypotheses}) must be at most "
                f"decode.beam_size ({self.beam_size}): a beam finds no more."
            )
        if self.max_length and self.min_length > self.max_length:
            raise InputError(
                f"decode.min_length ({self.min_length}) must be at most decode.max_length "
                f"({self.max_length})."
            )
        if self.min_length_ratio > self.max_length_ratio:
            raise InputError(
                f"decode.min_length_ratio ({self.min_length_ratio}) must be at most "
                f"decode.max_length_ratio ({self.max_length_ratio})."
            )
        for name in ("coverage_penalty", "second_search"):
            if self.sampling and getattr(self, name):
                raise InputError(
                    f"decode.{name} ranks the hypotheses of a beam; it has no meaning with "
                    "decode.sampling. Set one of them only."
                )

    @property
    def default_tag(self) -> str:
        """The tag of texts that have none; "" if they are read without one, or need their own."""
        return "" if self.target_tag == REQUIRED else self.target_tag

    @property
    def greedy(self) -> "DecodeConfig":
        """The greedy search with the same limits and sources, for predictions in training."""
        kept = select(self, lambda rules: rules.greedy)
        return DecodeConfig(beam_size=1, **kept)
