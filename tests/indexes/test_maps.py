"""The docstrings of the packages are their maps: each names every module."""

import re
from pathlib import Path
from types import ModuleType

import pytest

import toolsearch_indexes
from toolsearch_indexes import encoders


@pytest.mark.parametrize("package", [toolsearch_indexes, encoders], ids=["indexes", "encoders"])
def test_the_map_of_a_package_names_every_module(package: ModuleType) -> None:
    folder = Path(str(package.__file__)).parent
    modules = {file.stem for file in folder.glob("*.py")} | {file.parent.name for file in folder.glob("*/__init__.py")}
    named = set(re.findall(r"\w+", package.__doc__ or ""))
    assert modules - {"__init__"} <= named
