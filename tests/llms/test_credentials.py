"""Which key goes to which server, and addresses with a key in them."""

import pytest

from ifqa.errors import IfqaError
from ifqa.llms.credentials import (
    ADDRESS,
    KEY,
    KEYS,
    OPENAI,
    check_address,
    key_for,
    refuse_secrets,
    resolve_address,
    server_name,
    server_origin,
)

SECRET = "sk-canary-3f9c1e77a0b2"
ELSEWHERE = "https://api.example.org/v1"


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv(KEY, SECRET)
    for name in (ADDRESS, KEYS):
        monkeypatch.delenv(name, raising=False)


def test_this_machine_gets_the_key():
    for host in (
        "127.0.0.1:8000",
        "localhost:8000",
        "[::1]:8000",
        "0.0.0.0:1",
        "LOCALHOST",
        "a.localhost",
    ):
        assert key_for(f"http://{host}/v1") == SECRET


def test_openai_gets_the_key():
    assert key_for(OPENAI) == SECRET


def test_the_host_of_the_environments_address_gets_the_key(monkeypatch):
    monkeypatch.setenv(ADDRESS, "https://api.example.org/other")
    assert key_for(ELSEWHERE) == SECRET


def test_no_other_host_gets_the_key(monkeypatch):
    monkeypatch.setenv(ADDRESS, "https://api.example.org/other")
    others = (
        "api.example.org:8443",
        "api.openai.com.example.org",
        "api-openai.com",
        "vm:8765",
        "localhost.example.com",
        "127.x.com",
    )
    for host in others:
        with pytest.raises(
            IfqaError, match=f'no key is set for {host}.*export IFQA_KEYS="{host}=NAME"'
        ) as caught:
            key_for(f"https://{host}/v1")
        assert SECRET not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_key_in_place_of_a_variables_name_is_not_shown(monkeypatch):
    monkeypatch.setenv(KEYS, "api.example.org=gsk_Abc123")
    with pytest.raises(IfqaError, match=r"wanted api\.example\.org=NAME") as caught:
        key_for(ELSEWHERE)
    assert "gsk_" not in str(caught.value)


def test_the_environment_names_the_variable_of_another_hosts_key(monkeypatch):
    monkeypatch.setenv(KEYS, "other.example.org=OTHER  API.example.org=MINE\nvm:8765")
    with pytest.raises(IfqaError, match=r"MINE is not set; api\.example\.org needs a key"):
        key_for(ELSEWHERE)
    monkeypatch.setenv("MINE", " my-key-0123 ")
    assert [key_for(url) for url in (ELSEWHERE, "http://vm:8765/v1", OPENAI)] == [
        "my-key-0123",
        "none",
        SECRET,
    ]
    monkeypatch.setenv(ADDRESS, "http://vm:8765/v1")
    message = r"OPENAI_API_KEY is not sent to vm:8765 over unencrypted http://.*OPENAI_API_KEY=none"
    with pytest.raises(IfqaError, match=message):
        key_for("http://vm:8765/v1")
    for key in ("none", "EMPTY"):
        monkeypatch.setenv(KEY, key)
        assert key_for("http://vm:8765/v1") == "none"


@pytest.mark.parametrize(
    "address",
    [
        f"h/v1/{SECRET}",
        "h/proxy/0123456789abcdef0123456789abcdef/v1",
        "h/k_abcdefgh1234567890abcdefgh/v1",
        "h/key=sk-abcdefghijkl1234/v1",
        "h/v1/%73k-abcdefghijklmnop1234",
        "h/v1/%2573k-abcdefghijklmnop1234",
        "h/gw/aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgHiJ/v1",
        "h/bot123456:AAabcdefghijklmnopqrstu0123456/v1",
        "h/AKIAIOSFODNN7EXAMPLE/v1",
        "sk-abcdefghijkl.gw.example/v1",
        "h/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.abc/v1",
    ],
)
def test_a_key_in_an_address_is_refused_without_repeating_it(address):
    with pytest.raises(IfqaError, match="looks like a key") as caught:
        check_address(f"https://{address}")
    assert address[1:] not in str(caught.value)


def test_an_ambiguous_address_is_refused():
    invalid = {
        "text after": (
            "https://h/v1;key=abc",
            "https://h/v1?key=abc",
            "https://h/v1#abc",
            "https://h/%3Ba",
        ),
        "several addresses; wanted one.*nginx.*'upstream'.*vLLM's router": (
            "https://h/v1,https://i/v1",
            "https://h/v1 https://i/v1",
            "https://a b/v1",
            "https://h/v1\thttps://i/v1",
        ),
        "must begin with http": (
            "https://h\\.localhost/v1",
            "https://h%2e/v1",
            "ftp://h",
            "//h/v1",
        ),
        "is not an address": ("http://[::1",),
    }
    for message, addresses in invalid.items():
        for address in addresses:
            with pytest.raises(IfqaError, match=message):
                check_address(address)


def test_a_settings_address_precedes_the_environments(monkeypatch):
    assert resolve_address("") == OPENAI
    monkeypatch.setenv(ADDRESS, ELSEWHERE)
    assert resolve_address("") == ELSEWHERE
    assert resolve_address("http://h:1/v1") == "http://h:1/v1"


def test_an_origin_has_the_port_of_an_address():
    assert server_origin("https://API.example.org:8443/v1") == "https://api.example.org:8443"


def test_an_address_of_the_environment_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv(ADDRESS, "http://[::1")
    with pytest.raises(IfqaError, match="environment variable OPENAI_BASE_URL is not an address"):
        resolve_address("")


def test_real_addresses_are_accepted():
    for address in (
        "http://[::1]:8000/v1",
        "https://example.org/openai/deployments/gpt-4.1-mini/v1",
        "https://api-inference.huggingface.co/models/meta-llama/Meta-Llama-3-8B-Instruct/v1",
        "https://my-resource-name-2024.openai.azure.com/openai/v1",
        "https://j4xhm53fxl9ussm8.us-east-1.aws.endpoints.huggingface.cloud/v1",
        "https://workspace--my-vllm-llama-3-8b-inference-serve.modal.run/v1",
    ):
        check_address(address)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (OPENAI, "api.openai.com"),
        ("https://API.groq.com/openai/v1", "api.groq.com"),
        ("https://api.groq.com:443/openai/v1/", "api.groq.com"),
        ("https://gateway:8443/team-a/v1", "gateway:8443/team-a/v1"),
        ("http://gpu1:8000/v1/", "gpu1:8000"),
        ("http://gpu1/v1", "gpu1:80"),
        ("http://127.0.0.1:8000/v1", "localhost:8000"),
        ("http://[::1]:8000/v1", "localhost:8000"),
        ("https://localhost/v1", "localhost:443"),
        ("http://[fe80::1]:8000/v1", "[fe80::1]:8000"),
    ],
)
def test_a_server_is_named_by_its_port_unless_it_is_https_at_its_usual_one(url, name):
    assert server_name(url) == name


@pytest.mark.parametrize(
    "extra",
    [
        {"api_key": "x"},
        {"header": {"Authorization": "x"}},
        {"headers": {"Authorization": ["Basic x"]}},
        {"provider": [{"api_key": "hunter2"}]},
        {"accessToken": "x"},
        {"user": SECRET},
        {"tags": [SECRET]},
    ],
)
def test_a_parameter_that_looks_like_a_key_is_refused_without_repeating_it(extra):
    with pytest.raises(IfqaError, match="looks like a key") as caught:
        refuse_secrets("llm.extra", extra)
    assert SECRET not in str(caught.value)


def test_ordinary_parameters_are_no_keys():
    refuse_secrets(
        "llm.extra", {"top_k": 20, "stop_token_ids": [1, 2], "chat_template_kwargs": {"key": True}}
    )
