"""Web pages that a browser saved as one file."""

from contextlib import suppress
from email.mime.image import MIMEImage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.readers import READERS


def archive(page, charset="utf-8"):
    whole = MIMEMultipart("related")
    whole["From"] = "<Saved by Blink>"
    whole["Subject"] = "Rye"
    whole.attach(MIMEText(page, "html", charset))
    whole.attach(MIMEImage(b"\0", "png"))
    return whole.as_bytes()


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-2"])
@pytest.mark.parametrize("suffix", [".mht", ".mhtml"])
def test_the_page_is_read_without_its_parts(suffix, charset):
    content = archive("<h1>Łódź</h1><p>The mill.</p>", charset)
    assert runs(suffix, content) == [(1, 1, "Łódź"), (1, 0, "The mill.")]


def test_an_archive_without_a_page_is_unreadable():
    with pytest.raises(UnreadableFile, match="no page"):
        list(READERS[".mht"][1](b"Subject: x\n\nText", ()))


@given(
    content=st.binary(max_size=200) | st.text("-=;:\n bContent-Type", max_size=200).map(str.encode)
)
def test_any_bytes_are_read_or_unreadable(content):
    with suppress(UnreadableFile):
        assert all(place > 0 for place, _, _ in runs(".mht", content))
