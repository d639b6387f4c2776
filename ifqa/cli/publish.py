"""`ifqa publish`: folders for the model hub."""

import logging
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ifqa.cli.options import Json, Repeated, print_json, print_line

logger = logging.getLogger(__name__)


def publish(
    to: Annotated[Path, Option(help="Folder to write to; it is created.", show_default=False)],
    names: Annotated[
        Repeated, Argument(help="Names of weights, or sample.", show_default="everything")
    ] = None,
    json: Json = False,
) -> None:
    """Write folders with weights and the sample, for the Hugging Face hub.

    Each folder TO/NAME has the card as README.md, the files, LICENSE, and NOTICE or the Croissant
    metadata. Nothing is uploaded; the commands that upload are printed.
    """
    from ifqa.models.hub_folders import write_folders

    written = []
    for described, folder in write_folders(names or (), to):
        command = described.upload_command(folder)
        written.append({"folder": str(folder), "kind": described.kind, "upload": command})
        if not json:
            print_line(folder)
    if json:
        print_json({"folders": written})
    for entry in written:
        logger.info(f"upload it with: {entry['upload']}")
