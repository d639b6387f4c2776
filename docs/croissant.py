"""Croissant metadata of the bundled sample: its files, and the fields of their records.

The format is Croissant 1.0 (http://mlcommons.org/croissant/1.0), JSON-LD that data catalogues read.
"""

from collections.abc import Iterator
from pathlib import Path

from ifqa.storage.files import cached_sha256
from ifqa.storage.resources import BUNDLED

SAMPLE = BUNDLED / "sample"
FILE = "croissant.json"
VERSION = "1.0.0"
PUBLISHED = "2026-11-22"  # with ifqa 0.1.0
CITATION = (
    "@misc{ifqa, title = {ifqa: open-domain counterfactual question answering}, "
    "author = {{The ifqa developers}}, year = {2026}}"
)
#: The vocabulary that Croissant 1.0 prescribes word for word.
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
MEDIA_TYPES = {".json": "application/json", ".xml": "application/xml"}
FILES = {
    "causal.json": "Causal questions, such as why, with a paragraph that has the answer.",
    "dev.json": "A counterfactual question on each article.",
    "encyclopedia.xml": "The encyclopedia, as a dump of MediaWiki.",
    "hard.json": "Counterfactual questions that were written to be hard.",
    "train.json": "Counterfactual questions for demonstrations and for training.",
}
_QUESTION = {
    "question": ("sc:Text", False, "The question."),
    "answers": ("sc:Text", True, "All right forms of the answer."),
}
#: Field -> its type, whether it is a list, and its description; of IfQA's format.
COUNTERFACTUAL = {
    "idx": ("sc:Integer", False, "The number of the question in its file."),
    **_QUESTION,
    "context": ("sc:Text", True, "The gold passages, of 100 words, which have the facts."),
}
CAUSAL = {
    "split": ("sc:Text", False, "The split: dev or train."),
    "id": ("sc:Integer", False, "The number of the question in its split."),
    "type": ("sc:Text", False, "What is asked for, such as a cause or a purpose."),
    "article": ("sc:Text", False, "The title of the article."),
    **_QUESTION,
    "context": ("sc:Text", False, "The paragraph that has the answer."),
}


def sample_metadata() -> dict[str, object]:
    """The content of the sample's croissant.json."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "ifqa-sample",
        "description": "Counterfactual and causal questions over a small encyclopedia, all of it "
        "written for the project ifqa. A language model wrote the questions from the articles "
        "alone.",
        "license": "https://www.apache.org/licenses/LICENSE-2.0",
        "url": "README.md",  # the card, beside this file
        "citeAs": CITATION,
        "creator": {"@type": "sc:Organization", "name": "The ifqa developers"},
        "datePublished": PUBLISHED,
        "version": VERSION,
        "inLanguage": "en",
        "isLiveDataset": False,
        "keywords": ["counterfactual", "question answering", "IfQA"],
        "distribution": [_file_object(SAMPLE / name, about) for name, about in FILES.items()],
        "recordSet": [*_record_sets()],
    }


def _file_object(path: Path, about: str) -> dict[str, object]:
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "description": about,
        "contentUrl": path.name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": MEDIA_TYPES[path.suffix],
        "sha256": cached_sha256(path),
    }


def _record_sets() -> Iterator[dict[str, object]]:
    for file, about in FILES.items():
        name, _, kind = file.partition(".")
        if kind != "json":
            continue
        fields = CAUSAL if name == "causal" else COUNTERFACTUAL
        yield {
            "@type": "cr:RecordSet",
            "@id": name,
            "name": name,
            "description": about,
            "field": [
                {
                    "@type": "cr:Field",
                    "@id": f"{name}/{field}",
                    "name": field,
                    "description": description,
                    "dataType": kind_of_value,
                    **({"repeated": True} if is_list else {}),
                    "source": {
                        "fileObject": {"@id": file},
                        "extract": {"jsonPath": f"$[*].{field}"},
                    },
                }
                for field, (kind_of_value, is_list, description) in fields.items()
            ],
        }
