"""Exports: the SavedModel for TF Serving, the folder for CTranslate2, and their checks."""
