"""Print the texts of the questions in typology-100.tsv, from the public files that they stand in.

    python bench/typology.py NAME=FILE ... > questions.tsv

NAME is a name in the column `dataset`, and FILE a file of questions (`ifqa.formats.tables`). An id
is the file's own; in files without ids (hotpotqa, nq-dpr, trivia-dpr), it is the number of the
question from 0. FILE may hold several datasets, if its rows name theirs: then give it for each.
"""

import csv
import sys
from pathlib import Path

from ifqa.companions.causalqa.typology import read_annotations
from ifqa.formats.questions import iter_questions

NUMBERED = {"hotpotqa", "nq-dpr", "trivia-dpr"}


def main() -> None:
    wanted = read_annotations(Path(__file__).with_name("typology-100.tsv"))
    table = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    table.writerow(["dataset", "id", "question"])
    for argument in sys.argv[1:]:
        dataset, _, file = argument.partition("=")
        for number, question in enumerate(iter_questions(Path(file))):
            name = str(number) if dataset in NUMBERED else question.id
            if (dataset, name) in wanted and question.group in ("", dataset):
                table.writerow([dataset, name, " ".join(question.text.split())])


if __name__ == "__main__":
    main()
