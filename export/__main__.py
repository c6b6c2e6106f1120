"""Exports a run for TF Serving: python -m export --run_dir runs/x --to served/x/1."""

from tf_transformer.commands import command_line, export

if __name__ == "__main__":
    command_line.run(export.main, program="python -m export")
