"""The speed of translation, compared with other inference engines."""
