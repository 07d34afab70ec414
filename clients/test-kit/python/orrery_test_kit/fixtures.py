"""Fixtures for pytest: a server for the whole run, and a database that each test finds as it was seeded.

A project says what it needs in its conftest.py:

    @pytest.fixture(scope="session")
    def orrery_options():
        return {"seed": "tests/shop.json"}
"""

import pytest

from orrery_test_kit import start_orrery


@pytest.fixture(scope="session")
def orrery_options():
    """Arguments of start_orrery; to be overridden."""
    return {}


@pytest.fixture(scope="session")
def orrery(orrery_options):
    """A server that lives until the end of the run."""
    with start_orrery(**orrery_options) as server:
        yield server


@pytest.fixture(scope="session")
def _saved_databases():
    return set()


@pytest.fixture
def orrery_restored(orrery, _saved_databases):
    """A function: orrery_restored("shop") saves the database when it is first called, and takes it back in each later test."""

    def restored(database):
        if database in _saved_databases:
            orrery.restore(database, "pytest")
        else:
            orrery.snapshot(database, "pytest")
            _saved_databases.add(database)
        return orrery

    return restored
