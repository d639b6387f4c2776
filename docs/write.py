"""Write the generated parts of the docs: the tree in inside.md, command-line.md, and the grid of readers in readers.md.

    python docs/write.py            write them
    python docs/write.py --check    write nothing; name what is stale, and exit with 1

The tables of results are written by `ifqa report --into README.md`. The grid of readers is copied from the
RESULTS.md that it writes.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
END = "<!-- until here -->"


def tree(package: Path) -> str:
    """The package's files, each with the first line of its docstring."""
    lines = ["```text", f"{package.name}/"]
    lines += _below(package, 1)
    return "\n".join([*lines, "```"])


def _below(folder: Path, depth: int) -> Iterator[str]:
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py" or depth == 1)
    folders = sorted(path.parent for path in folder.glob("*/__init__.py"))
    for path in folders:
        yield f"{'  ' * depth}{path.name + '/':16} {first_line(path / '__init__.py')}"
        yield from _below(path, depth + 1)
    for path in modules:
        yield f"{'  ' * depth}{path.name:16} {first_line(path)}"


def first_line(path: Path) -> str:
    """The first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path} has no docstring"
    return docstring.splitlines()[0]


def command_line() -> str:
    """Every command with its arguments and options, as the command line itself knows them."""
    from typer.main import get_command

    from ifqa.cli.app import app

    parts = [
        "# Command line\n\nWritten by `docs/write.py` from the commands themselves; `ifqa COMMAND --help` shows the same.\n"
    ]
    for name, command in _commands(get_command(app), "ifqa"):
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
        shown = " ".join(one.name.upper() for one in arguments)
        parts.append(
            f"## {name}\n\n{_text(command.help)}\n\n```text\n{' '.join([name, '[OPTIONS]', shown]).strip()}\n```\n"
        )
        rows = [(f"`{one.name.upper()}`", _text(one.help), _default(one)) for one in arguments]
        rows += [(_flags(one), _text(one.help), _default(one)) for one in options]
        if rows:
            table = [
                "| argument or option | what | default |",
                "|---|---|---|",
                *("| " + " | ".join(row) + " |" for row in rows),
            ]
            parts.append("\n".join(table) + "\n")
    return "\n".join(parts)


def _commands(command, name: str) -> Iterator[tuple[str, object]]:
    below = getattr(command, "commands", {})
    yield name, command
    for key, one in below.items():
        yield from _commands(one, f"{name} {key}")


def _flags(option) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.bare_type().strip('<>')}"


def _default(parameter) -> str:
    value = parameter.default
    if isinstance(parameter.show_default, str):
        return f"`{parameter.show_default}`"
    if parameter.required:
        return "required"
    if value in (None, False, "", ()) or callable(value):
        return ""
    return f"`{value}`"


def _text(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")


def section(page: Path, title: str) -> str:
    """The text of a section of a Markdown page, without its heading."""
    _, found, after = page.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    assert found, f"{page} has no section {title!r}; write it: ifqa report"
    return after.partition("\n## ")[0].strip()


def marked(page: Path, mark: str, block: str) -> str:
    """The text of a page with a new block between its mark and END."""
    begin = f"<!-- written by docs/write.py: {mark} -->"
    text = page.read_text(encoding="utf-8")
    assert begin in text, f"{page} has lost its mark {begin!r}"
    return re.sub(f"{re.escape(begin)}.*?{re.escape(END)}", lambda _: f"{begin}\n{block}\n{END}", text, flags=re.DOTALL)


def written() -> dict[Path, str]:
    """Path -> the text it should have."""
    from ifqa.report.result_tables import READERS

    inside, readers = ROOT / "docs/inside.md", ROOT / "docs/readers.md"
    return {
        inside: marked(inside, "tree", tree(ROOT / "ifqa")),
        readers: marked(readers, "grid", f"\n{section(ROOT / 'experiments/RESULTS.md', READERS)}\n"),
        ROOT / "docs/command-line.md": command_line(),
    }


if __name__ == "__main__":
    check = "--check" in sys.argv
    stale = [path for path, text in written().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is stale; write it again: python docs/write.py")
        else:
            path.write_text(written()[path], encoding="utf-8")
            print(f"{path.relative_to(ROOT)} is written")
    sys.exit(check and bool(stale))
