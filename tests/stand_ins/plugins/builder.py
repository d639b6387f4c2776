"""A retriever whose build can be stopped half-way; tests copy this text."""

from pathlib import Path


class Builder:
    """Records the files in its folder, and stops half-way while there is a file "stop"."""

    def __init__(self, index) -> None:
        pass

    def search(self, questions, k):
        return []

    @classmethod
    def build(cls, passages, folder):
        with open("found.txt", "a") as file:
            print(*(path.name for path in folder.glob("half*")), file=file)
        (folder / "half").write_text("of it")
        if Path("stop").exists():
            raise KeyboardInterrupt
