import pytest

from ifqa.errors import IfqaError
from ifqa.settings import check_settings, settings_of


def build(passages, folder, *, k1: float = 0.9, threads: int = 0, stemmer: str = "porter", positions: bool = False):
    """Stands for a plug's build."""


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"k2": 1.0}, "unknown setting 'k2'; did you mean 'k1'"),
        ({"passages": "x"}, "unknown setting 'passages'"),
        ({"k1": "high"}, "setting 'k1': wanted float, found 'high'"),
        ({"k1": True}, "setting 'k1': wanted float, found True"),
        ({"threads": 1.5}, "setting 'threads': wanted int, found 1.5"),
        ({"positions": 1}, "setting 'positions': wanted bool, found 1"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_settings("setting", build, settings, given=["passages", "folder"])


def test_right_settings_pass_and_defaults_are_known():
    check_settings("setting", build, {"k1": 1, "positions": True}, given=["passages", "folder"])
    assert settings_of(build) == {"k1": 0.9, "threads": 0, "stemmer": "porter", "positions": False}
