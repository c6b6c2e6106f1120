"""Scores a run: python evaluate.py --run_dir runs/x --source t.en --reference t.de."""

from tf_transformer.commands import command_line, evaluate

if __name__ == "__main__":
    command_line.run(evaluate.main)
