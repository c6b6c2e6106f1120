"""A model with its tokenizer and search: texts in, texts out. `Translator` is in translator.py."""
