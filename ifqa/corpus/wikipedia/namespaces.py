"""Names of the file and category namespaces in the large Wikipedias and in a dump's siteinfo.

The names are those of MediaWiki's languages/messages/Messages*.php: NS_FILE and NS_CATEGORY of $namespaceNames, and their
$namespaceAliases. English names work in every language.
"""

import re
from collections.abc import Mapping

_FILE = """image|datei|bild|fichier|archivo|imagen|immagine|ficheiro|arquivo|imagem|bestand|afbeelding|plik|grafika|fil|tiedosto
|kuva|billede|bilde|soubor|súbor|obrázok|fájl|kép|fișier|imagine|fitxer|imatge|dosya|resim|berkas|gambar|tập tin|hình|slika
|datoteka|файл|изображение|зображення|картинка|датотека|слика|αρχείο|εικόνα|ملف|صورة|پرونده|تصویر|קובץ|תמונה|चित्र|ไฟล์|ภาพ
|ファイル|画像|파일|그림|文件|档案|檔案|图像|圖像"""
_CATEGORY = """kategorie|catégorie|categoría|categoria|categorie|kategoria|kategori|luokka|kategória|kategorija
|thể loại|категория|категорія|категорија|κατηγορία|تصنيف|رده|קטגוריה|श्रेणी|หมวดหมู่|カテゴリ|분류|分类|分類"""
_KNOWN = dict.fromkeys(_FILE.replace("\n", "").split("|"), "File")
_KNOWN |= dict.fromkeys(_CATEGORY.replace("\n", "").split("|"), "Category")
_ENGLISH = {"6": "File", "14": "Category"}  # by namespace number
_PREFIX = re.compile(r"\[\[\s*+([^\[\]|:\n]{2,30}+):")


def in_english(text: str, names: Mapping[str, str] = _KNOWN) -> str:
    """Translate file and category prefixes of links to English; `names` maps a prefix to "File" or "Category"."""
    if "[[" not in text:
        return text
    return _PREFIX.sub(lambda link: f"[[{english}:" if (english := names.get(_plain(link[1]))) else link[0], text)


def unknown_names(siteinfo: Mapping[str, str]) -> dict[str, str]:
    """The names in a dump's siteinfo (name -> namespace number) that `in_english` does not know: name -> English name."""
    known = _KNOWN | {english.lower(): english for english in _ENGLISH.values()}
    found = {_plain(name): _ENGLISH[key] for name, key in siteinfo.items() if key in _ENGLISH}
    return {name: english for name, english in found.items() if known.get(name) != english}


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).lower()
