"""The options of training."""

from dataclasses import dataclass
from typing import Literal

from tf_transformer.config.option import check, free, not_negative, positive, rate
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath

Precision = Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"]
Strategy = Literal["auto", "one", "mirrored", "multi_worker"]


@dataclass(frozen=True)
class Stage:
    """A part of a training.

    Attributes:
        corpora: its corpora, by the names in the table that a training prints, such as
            train.en-de; empty: all.
        updates: number of its updates; 0: those of `epochs` passes over its corpora.
        patience: it ends after this many scores in a row without improvement, but not before a
            whole pass; 0: as the option patience.
    """

    corpora: tuple[str, ...] = ()
    updates: int = free(0, not_negative)
    patience: int = free(0, not_negative)

    def __post_init__(self) -> None:
        check(self, "train.stages")


@dataclass(frozen=True)
class TrainConfig:
    """How the model is trained (paper sections 5.3 and 5.4).

    Attributes:
        epochs: passes over the training text; ignored when steps is given.
        steps: number of updates; 0: the updates of `epochs` passes.
        stages: parts of the training, each with some of the corpora, like [{updates: 20000},
            {corpora: [clean.en-de], patience: 5}]. Then steps is ignored. Empty: one part, with
            all corpora.
        warmup_steps: updates during which the learning rate rises.
        learning_rate: factor on the paper's schedule, d_model^-0.5 · min(step^-0.5, …).
        label_smoothing: share of the target probability that is spread over all tokens (ε).
        consistency: method that runs the model twice per update, for small corpora. The loss then
            includes the divergence of both predictions, with the published weight: 5 for r_drop and
            3 for simcut. r_drop: two draws of dropout. simcut: with all input tokens, and with 5%
            of them hidden. An update takes about twice the time.
        guided_alignment_weight: weight of a second loss, for which one head of the decoder learns
            the word alignments of the training text (Chen et al. 2016, Garg et al. 2019, who use
            0.05). The text names them as alignments of its corpora. decode.alignment_layer and
            decode.alignment_head name the head; by default it is the first head of the layer before
            the last. 0: no such loss.
        word_dropout: share of the input tokens that training hides, on both sides. For small
            corpora.
        accumulate: batches per update. Without dropout, N batches have the effect of one batch that
            is N times as large.
        clip_norm: largest norm of the gradient of all weights; a larger gradient is scaled down.
            0: no limit.
        precision: dtype of the computation. Weights, normalization, softmax and loss are always
            float32. auto: mixed_bfloat16 on a GPU that supports it, else float32.
        validate_every: updates in a validation interval; 0: the updates of an epoch.
        save_every: updates between checkpoints for resuming. Each validation also saves one.
        valid_score_examples: validation examples that are predicted (greedily) and scored, a
            sample of all; 0: none, as a language model has unless it is given.
        valid_score_every: validation intervals between two scores.
        metric: metric that chooses the best weights, for patience, export_best and --average best.
            One of: loss or perplexity (of validation), a metric of the task, a registered metric,
            or module:attribute. Translation has bleu, chrf, exact_match and ter. Empty: the task
            chooses; translation takes bleu, or chrf when most references have fewer than four
            words. Empty with valid_score_examples 0: loss. Of equal scores, the lower validation
            loss wins.
        patience: stop after this many scores in a row without improvement; 0: never.
        keep_checkpoints: newest validation intervals whose weights are kept.
        average_decay: decay of the moving average of weights for --average ema, like 0.999; 0: no
            average.
        export_best: export a SavedModel whenever the score improves.
        init_from: folder of another run; training starts with its weights and tokenizer. Options of
            the model, the vocabulary, the languages, the search and the task that are not given are
            those of that run, and learning_rate is lower. Its weights are the best until an update
            has a better score.
        freeze: parts of the model whose weights stay as they are, like '[encoder, "*_embedding"]'.
        lora: rank of low-rank adapters (Hu et al. 2022), which train beside the weights of
            init_from. The run holds the adapters only, so it needs the other run. 0: train the
            weights themselves.
        strategy: devices of the training. one: one device. mirrored: all GPUs of this machine.
            multi_worker: the processes in TF_CONFIG, or those of a job step of SLURM. auto:
            multi_worker with TF_CONFIG, mirrored with several GPUs, else one.
        threads: CPU threads on a machine without a GPU; 0: one per core.
        micro_batches: parts of a batch that run in parallel on CPUs; the parts share the threads
            equally. 0: the number of threads, or 1 where that is faster. A long training run on a
            CPU first measures this.
        jit_compile: compile losses and gradients with XLA. auto: a long training run on a CPU first
            measures whether this is faster; other training runs do not compile.
        deterministic: use only operations that give the same bits each time; slower.
        seed: seed of weights, dropout, held-out pairs and the order of batches.
    """

    epochs: int = free(30, positive, on_resume="free", common=True)
    steps: int = free(0, not_negative, on_resume="free", fits_text=True, common=True)
    stages: tuple[Stage, ...] = free(())
    warmup_steps: int = free(1000, positive, fits_text=True, common=True)
    learning_rate: float = free(1.0, positive, fine_tuning=0.1, common=True)
    label_smoothing: float = free(0.1, rate, common=True)
    consistency: Literal["none", "r_drop", "simcut"] = free("none")
    guided_alignment_weight: float = free(0.0, not_negative)
    word_dropout: float = free(0.0, rate)
    accumulate: int = free(1, positive)
    clip_norm: float = free(0.0, not_negative)
    precision: Precision = free("auto", common=True)
    validate_every: int = free(0, not_negative, fits_text=True, common=True)
    save_every: int = free(1000, positive, on_resume="free")
    valid_score_examples: int = free(200, not_negative)
    valid_score_every: int = free(1, positive)
    metric: str = free("", common=True)
    patience: int = free(0, not_negative, on_resume="free", common=True)
    keep_checkpoints: int = free(5, positive, on_resume="free")
    average_decay: float = free(0.0, rate)
    export_best: bool = free(False, on_resume="free")
    init_from: LocalPath = free("", common=True)
    freeze: tuple[str, ...] = free(())
    lora: int = free(0, not_negative)
    strategy: Strategy = free("auto", on_resume="free", common=True)
    threads: int = free(0, not_negative, on_resume="free", common=True)
    micro_batches: int = free(0, not_negative, on_resume="free")
    jit_compile: bool | Literal["auto"] = free("auto", on_resume="free")
    deterministic: bool = free(False)
    seed: int = free(1, common=True)

    def __post_init__(self) -> None:
        check(self, "train")
        if (self.freeze or self.lora) and self.average_decay:
            raise InputError(
                "train.average_decay averages all weights, and train.freeze or train.lora trains "
                "only some. Set one of them to nothing."
            )
        if self.guided_alignment_weight and self.consistency != "none":
            raise InputError(
                "train.guided_alignment_weight reads the attention of one run of the model, and "
                f"train.consistency {self.consistency} has two runs. Set one of them to nothing."
            )
        if self.lora and not self.init_from:
            raise InputError(
                "train.lora trains adapters of another run's model. Name that run: train.init_from."
            )
