"""Fixtures that several tests need."""

from pathlib import Path

import pytest

import pageset

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def recording() -> pageset.Recording:
    """The bundled recording."""
    return pageset.open()


@pytest.fixture(scope="session")
def traces() -> Path:
    """The directory of the repository's recordings."""
    return REPOSITORY / "data" / "traces"
