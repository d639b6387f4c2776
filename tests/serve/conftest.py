import pytest
from serving_system import client, small


@pytest.fixture
def experiment(tmp_path):
    return small(tmp_path)


@pytest.fixture
def web(experiment):
    """A client of the application without a network."""
    with client(experiment) as web_client:
        yield web_client
