"""The authors' release of Webis-CausalQA-22, and ELI5's file, both with invented questions."""

import bz2
import json
import zipfile


def write_eli5(folder, kilt=False, **changed):
    """Write ten questions in one of ELI5's layouts; `changed` are values of number 3.

    Number 9 has no answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, object]] = []
    for n in range(10):
        texts = [f"heat {n}", "it\tburns"] if n != 9 else []
        if kilt:
            output = [
                *({"answer": text, "meta": {"score": 2}} for text in texts),
                {"provenance": []},
            ]
            records.append({"id": f"q{n}", "input": f"why does lamp {n} glow", "output": output})
        else:
            answers = {"a_id": ["a", "b"], "text": texts, "score": [7, 2]}
            records.append(
                {
                    "q_id": f"q{n}",
                    "title": f"why does lamp {n} glow",
                    "selftext": "",
                    "answers": answers,
                }
            )
    records[3] |= changed
    content = "".join(json.dumps(record) + "\n" for record in records).encode()
    if kilt:
        (folder / "eli5-train-kilt.jsonl").write_bytes(content)
    else:
        (folder / "train_eli5.jsonl.bz2").write_bytes(bz2.compress(content))


def write_release(folder, packed=False):
    """Write the release of three datasets: four questions of each part of `squad2` and `paq`, and
    of `eli5` the ids.
    """
    files = {}
    for family in ("original", "random"):
        for part in ("train", "valid"):
            name = f"input/{family}-splits/{{}}_{part}_{family}_split.csv"
            head = "id,question,question_processed,context,context_processed,answer\n"
            rows = [
                (
                    f'{n},"Why, {part} {n}?","why, {part} {n}?","A ""lamp"",\nhot.","a ""lamp"", '
                    f'hot.","hot\thot {n}"\n'
                )
                for n in range(3)
            ]
            files[name.format("squad2")] = head + "".join(rows) + "3,Why none?,why none?,c,c,\n"
            files[name.format("paq")] = head + "".join(
                f"{n // 2},why {part} {n},why,c,c,hot {n}\n" for n in range(4)
            )
            files[name.format("eli5")] = {"train": "id\nq0\nq3\n", "valid": "id\nq6\nq9\n"}[part]
    folder.mkdir(parents=True, exist_ok=True)
    if packed:
        with zipfile.ZipFile(folder / "Webis-CausalQA-22-v-1.0.zip", "w") as archive:
            for name, text in files.items():
                archive.writestr(f"Webis-CausalQA-22-v-1.0/{name}", text)
            archive.writestr("Webis-CausalQA-22-v-1.0/models/squad2/config.json", "{}")
    else:
        for name, text in files.items():
            path = folder / "Webis-CausalQA-22-v-1.0" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder
