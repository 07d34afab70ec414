import pathlib

import pytest


@pytest.fixture(scope="session")
def orrery_options():
    return {"seed": pathlib.Path(__file__).parents[2] / "examples" / "shop.json"}
