"""Functions of a graph that few batches call: TensorFlow prepares them when they run.

Before the first call of a graph, TensorFlow optimizes it with all functions that it may call. That
takes seconds for functions which most calls never need. It leaves out the functions of `tf.data`,
which it optimizes when they run. `RARE_FUNCTION` marks a function in the same way.
"""

MARK = "_tf_data_function"
RARE_FUNCTION = {"_noinline": True, MARK: True}
"""The attributes of a `tf.function` that few batches call."""
