"""Pages and pictures of attention, curves of trainings, and figures of the paper's equations."""
