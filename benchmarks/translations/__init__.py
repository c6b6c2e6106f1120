"""Whether translations stay the same: in any batch, in an export, in another engine."""
