"""Ablations of an answer are the span reader's own answers from passages that are cut by hand."""

from dataclasses import replace

import pytest
from serving_system import small

from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system


def test_why_reads_again_without_each_part_of_the_evidence(tmp_path):
    experiment = small(tmp_path, reader={"name": "extractive", "passages": 3})
    with open_system(Run(experiment)) as system:
        answer = system.ask("If the mill had not been old, by whom would it have been finished?", 0)
        [ranking] = system.retrieve([answer.question], 3)
        ablations = system.why(answer, 0)
        assert answer.how is not None
        source = next(
            passage for passage in ranking.passages if passage.id == answer.how.passage_id
        )
        assert [ablation.passage for ablation in ablations] == [*ranking.passages, source, source]
        assert ["finished" in ablation.sentence for ablation in ablations] == [False] * 4 + [True]
        for ablation in ablations:
            left = [passage for passage in ranking.passages if passage != ablation.passage]
            if ablation.sentence:
                cut = replace(source, text=source.text.replace(ablation.sentence, "", 1).strip())
                left = [cut if passage == source else passage for passage in ranking.passages]
            [prediction] = system.read([answer.question], [left], [[0.0] * len(left)])
            assert ablation.answer == prediction.answer
            assert ablation.confidence == pytest.approx(prediction.confidence, abs=0.01)
            assert ablation.same == (ablation.answer == answer.text)
    with open_system(Run(replace(experiment, retriever=None))) as closed_book:
        assert closed_book.why(replace(answer, evidence=())) == []
