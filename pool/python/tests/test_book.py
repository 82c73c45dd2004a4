"""Runs the Python code that the book and the README show."""

import doctest
import re
import warnings
from pathlib import Path

import pytest

from conftest import REPOSITORY

PAGES = ["docs/book/src/guide/python.md", "docs/book/src/guide/fleet.md", "pool/python/README.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_so(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("numpy", "polars", "duckdb", "tqdm"):
        pytest.importorskip(module)
    monkeypatch.chdir(REPOSITORY)
    text = (REPOSITORY / page).read_text()
    session = "\n".join(block.group(1) for block in BLOCK.finditer(text))
    assert session.count(">>>") > 2
    test = doctest.DocTestParser().get_doctest(session, {}, page, page, 0)
    said: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert outcome.failed == 0, "".join(said)


def test_the_notebook_makes_a_picture_and_tables(tmp_path: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    for module in ("ipykernel", "matplotlib"):
        pytest.importorskip(module)
    page = (REPOSITORY / "docs/book/src/guide/python.md").read_text()
    drawing = BLOCK.search(page, page.index("## In a notebook"))
    assert drawing is not None
    notebook = nbformat.v4.new_notebook()
    sources = (drawing.group(1), "replay", "pageset.advise(recording)")
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    with warnings.catch_warnings():
        # Jupyter's own warnings.
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    picture, table, advice = notebook.cells
    lines = [line for line in picture.source.splitlines() if line]
    assert len(lines) <= 10
    assert any("image/png" in output.get("data", {}) for output in picture.outputs)
    assert "<table>" in table.outputs[0]["data"]["text/html"]
    assert "<li>No: leave" in advice.outputs[0]["data"]["text/html"]
