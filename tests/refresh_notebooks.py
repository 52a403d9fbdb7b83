"""Runs the notebooks in examples/ again, in place, without the times that would make every run a change."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

for path in sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, record_timing=False, resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, path)
