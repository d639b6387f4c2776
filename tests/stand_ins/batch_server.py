"""A server with OpenAI's batch API over loopback, as developers.openai.com/api/docs/guides/batch describes it.

`paid` counts the requests that it worked on, by prompt. `plan` gives the reply to each.
"""

import email
import json
from collections import Counter

from openai_server import Reply, Server, completion_body, error


class BatchServer(Server):
    def __init__(self, plan=None, latency=0.0):
        super().__init__(plan, latency)
        self.calls, self.paid = [], Counter()
        self.files, self.batches = {}, {}
        self.statuses = ["validating", "in_progress", "completed"]  # of a batch, at one poll after the other
        self.refuse = lambda requests: None  # the code and message of an error that fails a batch of these requests
        self.on_call = lambda number, moment: False  # called "before" and "after" each; true: the connection is lost

    async def respond(self, method, path, headers, body):
        if path.endswith("/completions"):
            return await self.answer(path, json.loads(body))
        route = f"{method} {path.partition('?')[0].removeprefix('/v1')}"
        self.calls.append(route)
        number = len(self.calls)
        if self.on_call(number, "before"):
            return Reply(cut="before")
        reply = self.route(route, headers, body)
        return Reply(cut="before") if self.on_call(number, "after") else reply

    def route(self, route, headers, body):
        method, _, name, *rest = route.replace(" ", "/").split("/")
        if method == "POST" and name == "files":
            form = email.message_from_bytes(f"content-type: {headers['content-type']}\r\n\r\n".encode() + body)
            (content,) = (part for part in form.get_payload() if part.get_filename())
            return Reply(body={"id": self.keep(content.get_payload(decode=True)), "object": "file"})
        if method == "POST" and name == "batches":
            return Reply(body=self.create(json.loads(body)))
        if name == "files" and rest[1:] == ["content"]:
            return Reply(body=self.files[rest[0]], headers={"content-type": "application/octet-stream"})
        if name == "models":
            return Reply(body={"object": "list", "data": [{"id": "m", "object": "model"}]})
        if name == "batches" and rest:
            return Reply(body=self.poll(rest[0])) if rest[0] in self.batches else error(404, "No such batch")
        return Reply(body={"object": "list", "data": list(self.batches.values())[::-1], "has_more": False})

    def keep(self, content):
        self.files[f"file-{len(self.files)}"] = content
        return f"file-{len(self.files) - 1}"

    def create(self, values):
        requests = [json.loads(line) for line in self.files[values["input_file_id"]].splitlines()]
        batch = {"id": f"batch_{len(self.batches)}", "object": "batch", "created_at": 2**31, "polls": 0, **values}
        batch |= {"output_file_id": None, "error_file_id": None, "errors": None}
        self.batches[batch["id"]] = batch
        if reason := self.refuse(requests):
            batch["errors"] = {"data": [dict(zip(("code", "message"), reason, strict=True))]}
            return batch | {"status": "validating"}
        outputs, errors = [], []
        for request in requests:
            prompt = request["body"]["messages"][-1]["content"]
            reply = self.plan(prompt, self.paid[prompt] + 1, request["body"])
            if reply is None:  # the batch ends before it
                failure = {"code": "batch_expired", "message": "This request could not be executed before the end."}
                errors.append({"custom_id": request["custom_id"], "response": None, "error": failure})
                continue
            self.paid[prompt] += reply.status == 200
            body = reply.body or completion_body(reply, request["body"]["model"], True)
            answer = {"custom_id": request["custom_id"], "response": {"status_code": reply.status, "body": body}}
            (outputs if reply.status == 200 else errors).append(answer)
        lines = [b"\n".join(json.dumps(line).encode() for line in part[::-1]) for part in (outputs, errors)]
        batch |= {"output_file_id": outputs and self.keep(lines[0]), "error_file_id": errors and self.keep(lines[1])}
        return batch | {"status": "validating"}

    def poll(self, name):
        batch = self.batches[name]
        batch["polls"] += 1
        status = self.statuses[min(batch["polls"], len(self.statuses)) - 1]
        batch["status"] = "failed" if batch["errors"] else status
        return batch
