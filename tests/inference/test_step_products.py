"""tf_transformer/inference/step_products.py: attention in steps has products of its own."""

import numpy as np
import tensorflow as tf

from tf_transformer import kernels
from tf_transformer.inference.step_products import for_steps


def test_a_chosen_set_stays():
    with kernels.use(kernels.PLAIN):
        assert for_steps() is kernels.PLAIN


def test_attention_of_a_large_step_equals_the_plain_form_and_uses_the_product_without_a_cache():
    """The number of keys is unknown in the graph, as in a search, and large enough for products."""
    random = np.random.default_rng(1)
    shapes = (8, 4, 2, 16), (8, 4, 300, 16), (8, 4, 300, 16)
    arrays = [random.normal(size=shape).astype("float32") for shape in shapes]
    specs = [tf.TensorSpec((None, 4, 2 if i == 0 else None, 16)) for i in range(3)]
    step = tf.function(for_steps().attention, input_signature=specs, autograph=False)
    graph = step.get_concrete_function().graph.as_graph_def()
    names = {node.op for function in graph.library.function for node in function.node_def}
    assert "BatchMatMulV3" in names
    expected = kernels.PLAIN.attention(*arrays)
    for field, value in zip(step(*arrays), expected, strict=True):
        np.testing.assert_allclose(field, value, atol=1e-5)
