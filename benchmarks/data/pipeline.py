"""The data of a training run: a store of ids, its batches, and the tokens of an epoch."""

import functools
import itertools

import numpy as np
import tensorflow as tf

from tf_transformer.config import DataConfig
from tf_transformer.config.data import SHARD_PAIRS
from tf_transformer.data.augmentation.text_augmentation import TextAugmentation
from tf_transformer.data.batch_sampler import BatchSampler
from tf_transformer.data.examples import ExampleStream
from tf_transformer.data.store import TokenStore, find_or_make
from tf_transformer.data.tokens import Encoder
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.text.codec import Codec
from tf_transformer.training.strategy import replica_batches


def store_of(text: ExampleStream, codec: Codec, data: DataConfig, folder: str) -> TokenStore:
    """The complete store, as a training run makes it."""
    encode = functools.partial(TRANSLATION.encode, codec=codec)
    encoder = Encoder(encode, max(codec.sizes), identity="benchmark")
    store = find_or_make(text, encoder, data.max_length, SHARD_PAIRS, folder)
    store.num_shards()  # returns when all shards are there
    return store


def sampler_of(store: TokenStore, data: DataConfig, codec: Codec) -> BatchSampler:
    """The batches of a training run, with its changes of the text."""
    change = TextAugmentation(data.augment, codec, data.max_length, seed=1)
    return BatchSampler(
        *(store, data.batch_tokens, data.bucket_width),
        seed=1,
        augment=change if data.augment else None,
        keeps_budget=bool(data.augment),
    )


def target_tokens_of_an_epoch(sampler: BatchSampler, epoch: int) -> int:
    """Reads an epoch from the dataset that a training run reads; padding is not counted."""
    tokens = 0
    strategy = tf.distribute.get_strategy()
    from_here = functools.partial(sampler.batches, start=epoch * len(sampler))
    with replica_batches(strategy, sampler.names, from_here) as batches:
        for (batch,) in itertools.islice(batches, len(sampler)):
            tokens += int(np.count_nonzero(batch["target"]))
    return tokens
