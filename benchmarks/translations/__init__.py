"""Translations and scores of trained runs, compared between batches, exports and engines."""
