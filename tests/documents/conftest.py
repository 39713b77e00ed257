"""What tests of documents share."""

import gc

import pytest


@pytest.fixture(scope="module")
def no_garbage_collection():
    """Do without the garbage collector: its time depends on what other tests have left behind."""
    gc.disable()
    yield
    gc.enable()
