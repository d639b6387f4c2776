"""Which key goes to which server, and addresses with a key in them."""

import pytest

from ifqa.errors import IfqaError
from ifqa.llms.credentials import ADDRESS, KEY, KEYS, NO_KEY, OPENAI, address_of, check_address, key_for, server_of

SECRET = "sk-canary-3f9c1e77a0b2"
ELSEWHERE = "https://api.example.org/v1"


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv(KEY, SECRET)
    for name in (ADDRESS, KEYS):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "url", [OPENAI, "http://127.0.0.1:8000/v1", "http://localhost:8000/v1", "http://[::1]:8000/v1"]
)
def test_openai_and_this_machine_get_the_key(url):
    assert key_for(url) == SECRET


@pytest.mark.parametrize(
    "url", [ELSEWHERE, "https://api.openai.com.example.org/v1", "https://api-openai.com/v1", "http://vm:8765/v1"]
)
def test_a_host_that_a_file_names_gets_no_key_and_the_message_says_how(url):
    host = url.split("/")[2]
    with pytest.raises(IfqaError, match=f'no key is set for {host}.*export IFQA_KEYS="{host}=NAME"') as refused:
        key_for(url)
    assert SECRET not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_the_host_of_the_environments_address_gets_the_key(monkeypatch):
    monkeypatch.setenv(ADDRESS, "https://api.example.org/other")
    assert key_for(ELSEWHERE) == SECRET
    with pytest.raises(IfqaError, match=r"no key is set for api\.example\.org:8443"):
        key_for("https://api.example.org:8443/v1")


def test_the_environment_names_the_variable_of_another_hosts_key(monkeypatch):
    monkeypatch.setenv(KEYS, "other.example.org=OTHER  API.example.org=MINE\nvm:8765")
    with pytest.raises(IfqaError, match=r"MINE is not set; api\.example\.org asks for a key"):
        key_for(ELSEWHERE)
    monkeypatch.setenv("MINE", " my-key-0123 ")
    assert key_for(ELSEWHERE) == "my-key-0123"
    assert key_for("http://vm:8765/v1") == NO_KEY
    assert key_for(OPENAI) == SECRET


@pytest.mark.parametrize("key", ["none", "EMPTY"])
def test_no_key_travels_unencrypted(monkeypatch, key):
    monkeypatch.setenv(ADDRESS, "http://vm:8765/v1")
    with pytest.raises(IfqaError, match=r"OPENAI_API_KEY is not sent to vm:8765 over http://.*OPENAI_API_KEY=none"):
        key_for("http://vm:8765/v1")
    monkeypatch.setenv(KEY, key)
    assert key_for("http://vm:8765/v1") == NO_KEY


@pytest.mark.parametrize(
    "address",
    [
        f"https://h/v1/{SECRET}",
        "https://h/proxy/0123456789abcdef0123456789abcdef/v1",
        "https://h/k_abcdefgh1234567890abcdefgh/v1",
        "https://h/key=sk-abcdefghijkl1234/v1",
        "https://h/v1/%73k-abcdefghijklmnop1234",
        "https://h/v1/%2573k-abcdefghijklmnop1234",
        "https://h/gw/aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgHiJ/v1",
        "https://h/bot123456:AAabcdefghijklmnopqrstu0123456/v1",
        "https://h/AKIAIOSFODNN7EXAMPLE/v1",
        "https://h/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.abc/v1",
        "https://sk-abcdefghijkl.gw.example/v1",
    ],
)
def test_a_key_in_an_address_is_refused_and_not_repeated(address):
    with pytest.raises(IfqaError, match="looks like a key in its host or path") as refused:
        check_address(address)
    assert address[9:] not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["https://h/v1;key=abc", "https://h/v1?key=abc", "https://h/v1#abc", "https://h/%3Ba"]
)
def test_an_address_ends_with_its_path(address):
    with pytest.raises(IfqaError, match="something after a"):
        check_address(address)


@pytest.mark.parametrize(
    "address", ["https://h\\.localhost/v1", "https://h%2e/v1", "https://a b/v1", "ftp://h", "//h/v1"]
)
def test_a_host_that_could_be_read_in_two_ways_is_refused(address):
    with pytest.raises(IfqaError, match="must begin with http"):
        check_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        OPENAI,
        "http://localhost:11434/v1",
        "http://[::1]:8000/v1",
        "https://example.org/openai/deployments/gpt-4.1-mini/v1",
        "https://api-inference.huggingface.co/models/meta-llama/Meta-Llama-3-8B-Instruct/v1",
        "https://my-resource-name-2024.openai.azure.com/openai/v1",
        "https://j4xhm53fxl9ussm8.us-east-1.aws.endpoints.huggingface.cloud/v1",
        "https://workspace--my-vllm-llama-3-8b-inference-serve.modal.run/v1",
        "https://generativelanguage.googleapis.com/v1beta/openai",
    ],
)
def test_addresses_of_real_servers_are_taken(address):
    check_address(address)


def test_a_files_address_comes_before_the_environments(monkeypatch):
    assert address_of("") == OPENAI
    monkeypatch.setenv(ADDRESS, ELSEWHERE)
    assert (address_of(""), address_of("http://h:1/v1")) == (ELSEWHERE, "http://h:1/v1")
    assert server_of("https://API.example.org:8443/v1") == "https://api.example.org:8443"
    monkeypatch.setenv(ADDRESS, "http://[::1")
    with pytest.raises(IfqaError, match="OPENAI_BASE_URL of the environment is no address"):
        address_of("")
