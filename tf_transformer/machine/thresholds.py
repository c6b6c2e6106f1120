"""Sizes at which one way of computing becomes faster than another.

Measured on 2 cores of an AMD EPYC with AVX-512 (TensorFlow 2.21, 23 November 2026), and there with
oneDNN limited to AVX2. They change speed, never results. `python -m benchmarks.kernels` times both
sides of each on the machine it runs on; research/docs/speed.md has the figures.
"""

# Attention of few queries: element by element, instead of as matrix products. oneDNN divides even
# the smallest product between threads, which takes longer than the product.
ELEMENTWISE_MULTIPLICATIONS = 2**17
ELEMENTWISE_QUERIES = 8

# Top-k: the length of the blocks that a row is cut into, the number of blocks per result below
# which cutting gains nothing, and the number of values that XLA sorts as fast without blocks.
SMALLEST_BLOCK, LARGEST_BLOCK = 16, 32
BLOCKS_PER_RESULT = 4
XLA_SORTS_WITHOUT_BLOCKS = 256

# Decoding: steps between two removals of cache rows that no hypothesis descends from, the share of
# finished sentences in a batch that is worth removing, and the share of the longest translation
# that a cache of fixed size has capacity for at first.
COMPACTION_INTERVAL = 8
SHARE_TO_REMOVE = 1 / 16
INITIAL_CAPACITY_DIVISOR = 3

# Training on processors: each micro-batch holds gradients of its own, as large as the model.
MAX_MICRO_BATCHES = 8

# Exports that XLA compiles: batches are padded to these lengths and sizes, and a compiled batch
# holds at most this number of source tokens, because its cache has its full size from the start.
LENGTH_BUCKETS = (8, 16, 24, 32, 48, 64, 128, 256, 512)
BATCH_BUCKETS = (1, 4, 16, 32)
COMPILED_BATCH_TOKENS = 4096
