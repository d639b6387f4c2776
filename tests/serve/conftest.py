import pytest
from served import small
from starlette.testclient import TestClient

from ifqa.serve.app import make_app
from ifqa.serve.security import Guard


@pytest.fixture
def experiment(tmp_path):
    return small(tmp_path)


@pytest.fixture
def web(experiment):
    """A client of the application without a network."""
    from served import service

    with service(experiment) as one, TestClient(make_app(one, Guard()), "http://localhost") as client:
        client.service = one
        yield client
