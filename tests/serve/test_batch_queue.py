"""The queue: its batches and its capacity; withdrawn questions are not computed."""

import asyncio
import threading

import pytest

from ifqa.records import Question
from ifqa.serve import batch_queue
from ifqa.serve.batch_queue import BatchQueue, QueueFull


def questions_of(*names):
    return [Question(name, f"If {name}?") for name in names]


class Work:
    """Answers with the id in capitals, once `may` is set; a question "bad" is a bug."""

    def __init__(self):
        self.batches = []
        self.may = threading.Event()
        self.begun = threading.Event()

    def __call__(self, questions, key, on_text):
        self.batches.append(("".join(question.id for question in questions), key))
        self.begun.set()
        assert self.may.wait(30)
        if any(question.id == "bad" for question in questions):
            raise RuntimeError("a bug")
        if on_text:
            on_text("half")
        return [question.id.upper() for question in questions]


def with_queue(scenario, **settings):
    """Run a scenario while the queue's thread is busy with a first question.

    Returns the batches after it.
    """

    async def run():
        work = Work()
        queue = BatchQueue(work, **{"waiting": 4, "batch": 3, **settings})
        queue.open()
        first = queue.put(questions_of("0"), None)
        await asyncio.to_thread(work.begun.wait, 30)
        try:
            await scenario(queue, work)
        finally:
            work.may.set()
            await asyncio.gather(*(pending.result for pending in first))
            await queue.close()
        assert work.batches[0] == ("0", None)
        return work.batches[1:]

    return asyncio.run(run())


async def answers(*tickets):
    return await asyncio.gather(
        *(pending.result for ticket in tickets for pending in ticket), return_exceptions=True
    )


def test_a_batch_has_different_waiting_questions_of_one_key_up_to_its_size():
    async def scenario(queue, work):
        tickets = [
            queue.put(questions_of(*names), key)
            for names, key in (("aa", None), ("b", 0.5), ("cde", None))
        ]
        work.may.set()
        assert await answers(*tickets) == ["A", "A", "B", "C", "D", "E"]

    assert with_queue(scenario, waiting=6) == [("acd", None), ("ae", None), ("b", 0.5)]


def test_clients_that_ask_again_at_once_share_the_next_batch(monkeypatch):
    # So that no clock decides what comes in time
    monkeypatch.setattr(batch_queue, "_WAIT_SHARE", 1e9)

    async def scenario(queue, work):
        both = queue.put(questions_of("a0", "b0"), None)
        work.may.set()
        await answers(both)
        first = queue.put(questions_of("a1"), None)
        for _ in range(9):
            await asyncio.sleep(0)
        await answers(first, queue.put(questions_of("b1"), None))

    assert with_queue(scenario) == [("a0b0", None), ("a1b1", None)]


def test_a_request_that_does_not_fit_the_queue_is_refused_whole():
    async def scenario(queue, work):
        queue.put(questions_of("a", "b", "c"), None)
        with pytest.raises(QueueFull, match="the queue is full with 3 questions; retry in 1 s"):
            queue.put(questions_of("d", "e"), None)
        assert len(queue) == 3
        assert len(queue.put(questions_of("d"), None)) == 1

    with_queue(scenario)


def test_a_withdrawn_question_makes_room_without_being_computed():
    async def scenario(queue, work):
        for pending in queue.put(questions_of("a", "b", "c", "d"), None)[:3]:
            pending.result.cancel()
        assert len(queue) == 1
        more = queue.put(questions_of("e", "f", "g"), None)
        work.may.set()
        await answers(more)

    assert with_queue(scenario) == [("def", None), ("g", None)]


def test_a_bug_in_one_question_fails_that_one_alone():
    async def scenario(queue, work):
        tickets = queue.put(questions_of("a", "bad", "b"), None)
        work.may.set()
        first, second, third = await answers(tickets)
        assert (first, type(second), third, queue.alive) == ("A", RuntimeError, "B", True)

    with_queue(scenario)


def test_a_waiting_question_gets_its_position():
    async def scenario(queue, work):
        queue.put(questions_of("a"), 0.5)
        [pending] = queue.put(questions_of("b"), None, watched=True)
        assert pending.ahead == 1
        work.may.set()
        await answers([pending])
        assert pending.ahead is None

    with_queue(scenario)


def test_a_question_gets_the_text_so_far():
    async def scenario(queue, work):
        [pending] = queue.put(questions_of("b"), None, watched=True)
        work.may.set()
        await answers([pending])
        assert pending.text == "half"

    with_queue(scenario)


def test_several_threads_work_in_parallel():
    async def scenario(queue, work):
        queue.put(questions_of("a", "b"), None)
        while len(work.batches) < 3:
            await asyncio.sleep(0.01)
        assert queue.busy == 3

    with_queue(scenario, batch=1, threads=3)
