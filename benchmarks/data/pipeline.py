"""The data of a training: a store of ids, batches of it, and what an epoch holds."""

import functools
import itertools

import numpy as np
import tensorflow as tf
from tf_transformer.data.batching import BatchPlan
from tf_transformer.data.corpus import PairStream

from tf_transformer.config import DataConfig
from tf_transformer.data.store import TokenStore, tokenised
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.training.strategy import share_out


def store_of(text: PairStream, tokenizer: Tokenizer, data: DataConfig, folder: str) -> TokenStore:
    """The complete store, as a training makes it."""
    store = tokenised(text, tokenizer, data.max_length, data.shard_pairs, folder)
    store.num_shards()  # returns when all shards are there
    return store


def sampler_of(store: TokenStore, data: DataConfig) -> BatchPlan:
    """The batches of a training."""
    return BatchPlan(store, data.batch_tokens, data.bucket_width, seed=1)


def target_tokens_of_an_epoch(sampler: BatchPlan, epoch: int) -> int:
    """Reads an epoch from the dataset that a training reads; padding is not counted."""
    tokens = 0
    from_here = functools.partial(sampler.batches, start=epoch * len(sampler))
    with share_out(tf.distribute.get_strategy(), from_here) as batches:
        for ((_, labels),) in itertools.islice(batches, len(sampler)):
            tokens += int(np.count_nonzero(labels))
    return tokens
