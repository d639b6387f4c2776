"""`ifqa data NAME`: fetch a benchmark, a dump, a model or files of an object store, or build the
files of a benchmark.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option
from typer.main import get_command

from ifqa.cli.options import lazy_group, options_of, print_line, with_options, with_quiet
from ifqa.errors import unknown_name

if TYPE_CHECKING:
    from ifqa.models.places import FetchedModel

_From = Annotated[
    Path | None,
    Option(
        "--from",
        help="Take the files from this folder instead of downloading them.",
        metavar="FOLDER",
    ),
]
_QUESTIONS = "Questions"
_TEXTS = "Passages"
_MODELS = "Models"


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


def fetch_wiki(name: str, date: str = "", url: str = "") -> None:
    """Fetch a wiki's dump, or DPR's passages, into data/NAME/."""
    from ifqa.corpus.wikipedia.dump_download import fetch_source

    _print_lines(fetch_source(name, date, url))


def _psgs_w100(
    url: Annotated[str, Option(help="A mirror: the address of a folder with the file.")] = "",
) -> None:
    """Fetch the 21 million passages of DPR."""
    fetch_wiki("psgs_w100", url=url)


def _wiki_command(name: str) -> Callable[..., None]:
    def fetch_dump(
        date: Annotated[
            str, Option(help="Date of the dump, YYYYMMDD.", show_default="the newest finished")
        ] = "",
        url: Annotated[str, Option(help="A mirror of https://dumps.wikimedia.org.")] = "",
    ) -> None:
        fetch_wiki(name, date, url)

    fetch_dump.__doc__ = f"""Fetch a dump of Wikipedia: enwiki, dewiki, simplewiki ...

    Files are verified by their checksums, and an interrupted download resumes.
    The folder data/{name}/ is created when all files are complete.
    """
    return fetch_dump


def _address_command(url: str) -> Callable[..., None]:
    def copy(
        to: Annotated[Path, Option(help="Folder of the copies, which the corpus's file names.")],
    ) -> None:
        """Copy files of an object store, by fsspec: one, a folder, or a pattern.

        An interrupted copy resumes.
        """
        from ifqa.storage.download import download_objects

        _print_lines(str(file.path) for file in download_objects(url, to))

    return copy


def _model_command(model: "FetchedModel", text: str = "") -> Callable[..., None]:
    def fetch_model(source: _From = None) -> None:
        from ifqa.models.install import install_model

        _print_lines(install_model(model, Path(), source))

    fetch_model.__doc__ = text or model.help
    return fetch_model


def _benchmark_command(name: str) -> Callable[..., None]:
    from ifqa.benchmarks.downloads import fetch_files
    from ifqa.plugins import open_benchmark

    benchmark = open_benchmark(name)

    def fetch(source: _From = None) -> Iterable[str]:
        return fetch_files(benchmark, source)

    fetch.__doc__ = (
        f"Fetch the benchmark {name}, and verify the checksums that its publisher gives, if any."
    )
    function = benchmark.fetcher() or fetch

    def verb(values: Any) -> None:
        _print_lines(function(**values))

    verb.__doc__ = function.__doc__
    return with_options(options_of(function), lambda values: {"values": values})(verb)


_FID_HELP = """Fetch what the reader fid needs: flan-t5-small.

The reader's adapter, trained on IfQA, comes with ifqa.
"""


def _benchmarks() -> Iterator[str]:
    """The benchmarks of ifqa that have something to fetch, build or make."""
    from ifqa.plugins import open_benchmark, plugin_names

    for name in plugin_names("benchmark"):
        benchmark = open_benchmark(name)
        if benchmark.downloads or benchmark.fetcher():
            yield name


@cache
def _listed_commands() -> dict[str, tuple[str, Callable[..., None]]]:
    """Name -> panel and command, of dumps and models."""
    from ifqa.models.places import FLAN_T5, MODELS

    return {
        "enwiki": (_TEXTS, _wiki_command("enwiki")),
        "psgs_w100": (_TEXTS, _psgs_w100),
        "fid": (_MODELS, _model_command(FLAN_T5, _FID_HELP)),
        **{name: (_MODELS, _model_command(model)) for name, model in MODELS.items()},
    }


def _names() -> list[str]:
    return [*_benchmarks(), *_listed_commands()]


def _command(name: str) -> Any:
    """The command of a name.

    A name that is neither listed, nor an address, nor a wiki is taken to be a benchmark's.
    """
    app = typer.Typer(add_completion=False)
    panel, function = _listed_commands().get(name) or (_QUESTIONS, _unlisted_command(name))
    app.command(name, rich_help_panel=panel)(with_quiet(function))
    return get_command(app)


def _unlisted_command(name: str) -> Callable[..., None]:
    from ifqa.corpus.wikipedia.dump_download import is_published
    from ifqa.plugins import plugin_names
    from ifqa.retrieval.prebuilt import list_prebuilt

    if "://" in name:
        return _address_command(name)
    if is_published(name):
        return _wiki_command(name)
    if name in plugin_names("benchmark") or ":" in name:
        return _benchmark_command(name)
    if name in (indexes := list_prebuilt()):
        return _prebuilt_command(name)
    raise unknown_name("benchmark, dump, model or index", name, [*_names(), *indexes])


def _prebuilt_command(name: str) -> Callable[..., None]:
    def fetch() -> None:
        """Fetch an index that Pyserini publishes, and verify its checksum."""
        from ifqa.retrieval.prebuilt import fetch_prebuilt

        _print_lines(fetch_prebuilt(name))

    return fetch


_HELP = """Fetch questions, dumps and models, or make questions.

NAME may also be another wiki, an index of Pyserini's list, a plugin's benchmark, or an address (s3://bucket/folder).
`ifqa data NAME --help` shows the options of a name. Interrupted downloads resume.
"""
data = lazy_group(_HELP, _names, _command)
