"""Sizes at which one way of computing becomes faster than another.

Measured on 2 cores of an AMD EPYC with AVX-512 (TensorFlow 2.21, 23 and 29 November 2026), also
with oneDNN limited to AVX2. They change speed, never results. `python -m benchmarks.kernels` times
both ways on your machine; research/docs/speed.md has the measurements.
"""

# The largest number of queries for which a search multiplies each alone. For one sentence, 16 are
# still faster alone; in batches of 32, 8 are faster together, by oneDNN.
FEW_QUERIES = 8

# Top-k: the lengths of the blocks of a row; the smallest number of blocks for each result at which
# blocks gain time; and the number of values that XLA sorts as fast without blocks.
SMALLEST_BLOCK, LARGEST_BLOCK = 16, 32
BLOCKS_PER_RESULT = 4
XLA_SORTS_WITHOUT_BLOCKS = 256

# Decoding: number of steps between two removals of dead cache rows; the share of finished sentences
# at which they are removed from the batch; and the first capacity of a cache of fixed size, as the
# longest translation divided by this number.
COMPACTION_INTERVAL = 8
SHARE_TO_REMOVE = 1 / 16
INITIAL_CAPACITY_DIVISOR = 3

# The smallest matrix that a model in int8 keeps as int8 numbers. In smaller products of few rows,
# to quantize the inputs takes longer than the product saves.
SMALLEST_INT8_MATRIX = 2**18

# Training on CPUs: each micro-batch holds its own gradients, which are as large as the model.
MAX_MICRO_BATCHES = 8

# Exports that XLA compiles: batches are padded to these lengths and sizes. A compiled batch holds
# at most this number of source tokens, because its cache has its full size from the start.
LENGTH_BUCKETS = (8, 16, 24, 32, 48, 64, 128, 256, 512)
BATCH_BUCKETS = (1, 4, 16, 32)
COMPILED_BATCH_TOKENS = 4096
