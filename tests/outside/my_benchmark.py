"""A benchmark from outside: questions about teams, scored by accuracy, for each paragraph."""

from ifqa import Question
from ifqa.protocols import Subset
from ifqa.scoring.measures.exact_match import ACCURACY


class Teams:
    """Six questions of three paragraphs, half of them about captains."""

    measures = (ACCURACY,)
    subsets = (Subset("captains", lambda question: question.label("about") == "captain"),)
    groups = "paragraph"

    def questions(self, split: str) -> list[Question]:
        """The same six questions for every split."""
        about = {
            "captain": "If team{n} had won, who would lead team{n}?",
            "town": "If team{n} had won, where is team{n}?",
        }
        return [
            Question(
                id=f"teams/{split}/{n}-{what}",
                text=text.format(n=n),
                answers=(f"{what}{n}",),
                choices=tuple(f"{what}{m}" for m in range(3)),
                group=f"paragraph {n}",
                labels=(("about", what),),
            )
            for n in range(3)
            for what, text in about.items()
        ]
