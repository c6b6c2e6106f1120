"""The model and the optimizer of a training run, and the execution of its updates.

Weights may be frozen, or those of another run.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from tf_transformer import kernels, tasks
from tf_transformer.config import Config, TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.losses.choice import make_loss
from tf_transformer.machine.gpus import has_gpu
from tf_transformer.machine.limits import available_cores
from tf_transformer.machine.threads import set_threads
from tf_transformer.machine.thresholds import MAX_MICRO_BATCHES
from tf_transformer.models.adapters import add_adapters, is_adapter
from tf_transformer.models.names import by_name
from tf_transformer.run.run import Run
from tf_transformer.tasks.task import Task
from tf_transformer.text.codec import Codec
from tf_transformer.training.schedule import TransformerSchedule
from tf_transformer.training.update import Updater, make_optimizer

_LAYER = re.compile(r"(\w+)/layer_(\d+)/")  # at the start of the name of a weight


class Execution(NamedTuple):
    """The execution of a training run's updates."""

    jit_compile: bool = False  # XLA compiles losses and gradients, once for each shape of a batch
    micro_batches: int = 1  # parts of a batch that are computed in parallel
    kernels: str = "tuned"  # the name of a set; "": the set in use

    def use_threads(self, count: int = 0) -> None:
        """Divides CPU threads, 0: one per core, between the micro-batches.

        It has no effect after TensorFlow has computed something, nor on a machine with a GPU.
        """
        if not has_gpu():
            count = count or available_cores()
            set_threads(count, max(1, count // self.micro_batches))

    def __str__(self) -> str:
        compiled = "compiled by XLA" if self.jit_compile else "not compiled"
        plural = "es" * (self.micro_batches > 1)
        return f"{compiled}, {self.micro_batches} micro-batch{plural}, {self.kernels} kernels"


def possible_executions(train: TrainConfig) -> list[Execution]:
    """The executions that the options and the machine allow. Short training runs take the first.

    Either each thread computes a micro-batch, or all threads compute the whole batch. Micro-batches
    are more often faster without XLA, and the whole batch with XLA.
    """
    names = kernels.possible_names()
    if has_gpu():
        return [Execution(train.jit_compile is True, train.micro_batches or 1, names[0])]
    threads = min(train.threads or available_cores(), MAX_MICRO_BATCHES)
    numbers = [train.micro_batches] if train.micro_batches else sorted({1, threads})
    forms = [(False, number) for number in reversed(numbers)]
    forms += [(True, number) for number in numbers]
    forms = [form for form in forms if train.jit_compile in ("auto", form[0])]
    return [Execution(*form, name) for name in names for form in forms]


def make_updater(config: Config, task: Task, codec: Codec, execution: Execution) -> Updater:
    """Builds a new model with its optimizer; call it in the strategy's scope."""
    train = config.train
    precision = _precision(train.precision)
    model = task.build_model(config, codec, precision)
    if train.lora:
        add_adapters(model, train.lora)
    freeze(model, train.freeze)
    schedule = TransformerSchedule(config.model.d_model, train.warmup_steps, train.learning_rate)
    optimizer = make_optimizer(
        model,
        schedule,
        clip_norm=train.clip_norm,
        average_decay=train.average_decay,
        scale_loss=precision == "mixed_float16",
    )
    return Updater(task, model, optimizer, make_loss(train, config.decode), *execution)


def _precision(name: str) -> str:
    if name != "auto":
        return name
    gpus = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    capabilities = [gpu.get("compute_capability", (0, 0)) for gpu in gpus]
    has_bfloat16 = bool(capabilities) and min(capabilities) >= (8, 0)
    return "mixed_bfloat16" if has_bfloat16 else "float32"


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Makes the weights of a built model with matching names of parts not trainable.

    "encoder" is the whole encoder, "*/layer_0" the first layer of each stack.
    """
    weights = {name: weight for name, weight in by_name(model).items() if weight.trainable}
    for pattern in patterns:
        matching = [
            weight
            for name, weight in weights.items()
            if fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}/*")
        ]
        if not matching:
            names = dict.fromkeys(name.partition("/")[0] for name in weights)
            raise InputError(
                f"train.freeze: no weights are named {pattern!r}; the parts of this model are "
                f"{', '.join(names)}."
            )
        for weight in matching:
            weight.trainable = False
    if not model.trainable_variables:
        raise InputError(
            f"train.freeze {list(patterns)} leaves no weights to train. Freeze fewer parts."
        )


def initialize(model: keras.Model, config: Config, origin: Run) -> bool:
    """Gives a new model the weights of its origin; whether it has all, and so the predictions.

    A model of the same task and sizes gets all weights. A different model gets each weight with the
    same name and shape. If a stack of layers has another depth, its layers start as layers of the
    origin at even distances, the first and the last included (Shleifer and Rush 2020). All weights
    of the encoder must come from the origin, else an `InputError` is raised. A classifier with
    other labels has a new head.
    """
    source, folder = origin.config, origin.folder.path
    other = origin.model(tasks.for_run(source).build_model)
    theirs = by_name(other)
    ours = {name: weight for name, weight in by_name(model).items() if not is_adapter(name)}
    same_labels = getattr(other, "labels", ()) == getattr(model, "labels", ())
    same_task = source.task.name == config.task.name
    shapes, of_theirs = ({n: tuple(x.shape) for n, x in w.items()} for w in (ours, theirs))
    is_whole = same_task and same_labels and shapes == of_theirs
    depths = _depths(ours), _depths(theirs)
    names = {name: _in_depth(name, *depths) for name in ours}
    fitting = {name for name, shape in shapes.items() if of_theirs.get(names[name]) == shape}
    if not same_labels:
        fitting = {name for name in fitting if not name.startswith("head/")}
    if config.train.lora and not is_whole:
        raise InputError(
            f"train.lora needs a run with the same task and sizes, and {folder} has others. Train "
            "without train.lora."
        )
    encoder = {name for name in ours if name.startswith("encoder/")}
    if not is_whole and not (encoder and encoder <= fitting):
        raise InputError(
            f"train.init_from={folder} cannot start this run: its model ({type(other).__name__}) "
            f"has the layers {_listed(other)}; the model of this run ({type(model).__name__}) has "
            f"{_listed(model)}. Both need an encoder with the same weights."
        )
    for stack, count in depths[0].items():
        if count != (there := depths[1].get(stack, count)):
            tqdm.write(f"{stack}: {count} layers start as layers of the {there} of {folder}")
    for name in fitting:
        ours[name].assign(np.asarray(theirs[names[name]]))
    return is_whole


def _depths(names: Iterable[str]) -> dict[str, int]:
    """The number of layers of each stack, such as the encoder, in a model with these weights."""
    layers = [(match[1], int(match[2])) for name in names if (match := _LAYER.match(name))]
    return {stack: number + 1 for stack, number in sorted(layers)}


def _in_depth(name: str, depths: Mapping[str, int], of_origin: Mapping[str, int]) -> str:
    """The name in the origin of a weight, for the numbers of layers here and there."""
    if not (match := _LAYER.match(name)):
        return name
    stack, number, last = match[1], int(match[2]), depths[match[1]] - 1
    there = round(number * (of_origin.get(stack, 1) - 1) / last) if last else 0
    return f"{stack}/layer_{there}/{name[match.end() :]}"


def _listed(model: keras.Model) -> str:
    """The names of layers, with the number of parameters of each."""
    return ", ".join(f"{layer.name} ({layer.count_params():,})" for layer in model.layers)
