"""Recipes: a recipe is a frozen dataclass with all settings of a training, under a name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ifqa.errors import unknown
from ifqa.settings import check_settings

Recipe = TypeVar("Recipe", bound=Any)


def changed(recipes: Mapping[str, Recipe], recipe: str, changes: Mapping[str, object]) -> Recipe:
    """A copy of a recipe with some settings changed.

    Raises:
        IfqaError: there is no such recipe or setting, or a value is of the wrong type or size.
    """
    if recipe not in recipes:
        raise unknown("recipe", str(recipe), recipes)
    check_settings("training setting", type(recipes[recipe]), changes)
    return replace(recipes[recipe], **changes)
