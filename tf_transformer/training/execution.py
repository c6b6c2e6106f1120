"""The execution of updates: compilation, micro-batches, kernels and threads."""

from typing import NamedTuple

from tf_transformer import kernels
from tf_transformer.config import TrainConfig
from tf_transformer.machine.gpus import has_gpu
from tf_transformer.machine.limits import available_cores
from tf_transformer.machine.threads import set_threads
from tf_transformer.machine.thresholds import MAX_MICRO_BATCHES


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
