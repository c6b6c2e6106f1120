"""Translates lines: python translate.py --run_dir runs/x < in.txt > out.txt."""

from tf_transformer.commands import command_line, translate

if __name__ == "__main__":
    command_line.run(translate.main)
