"""Draws the curves of training runs: tf-transformer plot runs/a runs/b --output curves.png."""

import pathlib

from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.outputs import require_free, write_output
from tf_transformer.run.folder import RunFolder
from tf_transformer.visualization.curves import FORMATS, draw_curves


def main(*run_dirs: LocalPath, output: LocalPath = "curves.png", overwrite: bool = False) -> None:
    """Draws the loss, scores, learning rate and speed of one or several runs in one picture.

    Args:
        run_dirs: folders of the runs. A run that is still training is drawn up to now.
        output: file for the picture; .png, .svg or .pdf.
        overwrite: replace an existing file.
    """
    suffix = pathlib.Path(output).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"--output must end in {', '.join(FORMATS)}; got {output}.")
    folders = list(map(RunFolder, run_dirs))
    require_free([output], [path for folder in folders for path in folder.files()], overwrite)
    runs = {}
    for name, folder in zip(run_dirs, folders, strict=True):
        folder.load_config()  # reports a folder without a run
        runs[name] = folder.load_metrics()
        if not runs[name]:
            raise InputError(
                f"{folder.path} has no metrics yet. Training writes the first after its first "
                "validation."
            )
    try:
        picture = draw_curves(runs, suffix)
    except ModuleNotFoundError as error:
        raise InputError(
            "curves are drawn with matplotlib: pip install 'tf_transformer[plots]', or "
            "pip install '.[plots]' in the repository."
        ) from error
    write_output(output, picture, overwrite)
    print(f"drew {output}")
