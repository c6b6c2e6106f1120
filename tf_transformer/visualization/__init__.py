"""Pages and pictures of attention, curves of training runs, figures of the paper's equations."""
