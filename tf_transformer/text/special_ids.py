"""Token ids and characters with the same meaning in every vocabulary."""

PAD_ID = 0  # padding: no mask lets a query attend to it
BOS_ID = 1  # starts every target sequence that the decoder reads
EOS_ID = 2  # ends every source and target sequence
UNK_ID = 3  # never predicted: bytes spell the characters that the vocabulary lacks
BLANK = "\u2581"  # SentencePiece's character for a space; the first piece of a word starts with it
