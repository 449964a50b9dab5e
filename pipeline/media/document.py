"""A page of a document (PDF, or TIFF of several pages) as a picture, and the text that a PDF has for it."""

from __future__ import annotations

import ctypes
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from pipeline.errors import Code, ItemError
from pipeline.media.image import decode_image
from pipeline.media.shrink import PixelBudget, shrunk_size
from pipeline.media.sniff import looks_like

_POINTS_PER_INCH = 72
# A linearised file ("fast web view") says its own length in its first object.
_LENGTH = re.compile(rb"/Linearized\b[^>]{0,200}?/L\s+(\d{1,18})\b")


@dataclass(frozen=True)
class PageScale:
    """How large a PDF page becomes: `dpi` pixels per inch, or `max_side` pixels of its longer side."""

    dpi: float = 150.0
    max_side: int | None = None

    def size(self, width: float, height: float, budget: PixelBudget) -> tuple[int, int]:
        """The (width, height) in pixels of a page of so many points, no larger than `budget`."""
        longer = max(width, height)
        scale = self.dpi / _POINTS_PER_INCH if self.max_side is None else self.max_side / longer
        return shrunk_size(max(1, round(width * scale)), max(1, round(height * scale)), budget)


def decode_page(
    data: bytes,
    *,
    page: int,
    scale: PageScale,
    budget: PixelBudget,
    max_pixels: int,
    password: str | None = None,
    text_chars: int = 0,
    recover: bool = False,
) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """Draw a page of a document to uint8 (H, W, 3) sRGB, on white, and read its text.

    Pages count from 1. A PDF page is drawn as a viewer shows it: its CropBox, rotated as it says, with
    annotations and filled-in forms, at the size of `scale` within `budget`: never larger first, so that a page
    of 5 m costs what the model is shown. `max_pixels` bounds that size. A page of another file is decoded as
    a picture (`decode_image`), so `scale` does not bear on it.
    The facts are `text`: the first `text_chars` characters that a PDF has for the page, in the file's order.
    With `recover` a PDF without its end is taken if its page can be drawn.

    Raises ItemError: PAGE_NOT_FOUND, PASSWORD_WRONG, TOO_LARGE, NOT_MEDIA, DECODE_TRUNCATED,
    DECODE_CORRUPT, EMPTY_FILE.
    """
    if not _is_pdf(data):
        _check_page(page, _pictures(data) if page != 1 else 1)
        pixels = decode_image(data, budget=budget, max_pixels=max_pixels, recover=recover, page=page)
        return pixels, {"text": ""}
    with _opened(data, password, recover) as document:
        _check_page(page, len(document))
        with _coded(f"page {page}"):
            shown = document[page - 1]
            size = scale.size(*_points(shown), budget)
        if size[0] * size[1] > max_pixels:
            why = f"page {page} would have {size[0]}x{size[1]} pixels, more than max_pixels={max_pixels}"
            raise ItemError(Code.TOO_LARGE, f"{why}: lower media.document.dpi, or set its max_side")
        with _coded(f"page {page}"):
            pixels = _drawn(shown, size)
            text = _text(shown, text_chars)
    return pixels, {"text": text}


def count_pages(data: bytes, *, password: str | None = None) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """How many pages a document has: the fact `pages`, with no pixels (so that a decoding child can tell it).

    Raises ItemError: as `decode_page`, for a document that cannot be opened.
    """
    if _is_pdf(data):
        with _opened(data, password, recover=True) as document:
            pages = len(document)
    else:
        pages = _pictures(data)
    return np.empty(0, np.uint8), {"pages": pages}


def _is_pdf(data: bytes) -> bool:
    if not data:
        raise ItemError(Code.EMPTY_FILE, "the document has 0 bytes: fetch or export it again")
    kind = looks_like(data)
    if kind.name == "PDF document":
        return True
    if kind.family != "image":
        wanted = "expected a PDF or a picture of pages (TIFF)"
        cure = "; convert it with ps2pdf" if kind.name == "PostScript document" else ""
        raise ItemError(Code.NOT_MEDIA, f"{wanted}, but this looks like: {kind.name}{cure}")
    return False


def _check_page(page: int, pages: int) -> None:
    if page == 0:
        raise ItemError(
            Code.PAGE_NOT_FOUND,
            f"the document has {pages} pages, of which none is a row: see media.document.pages and max_pages; "
            "if it could not be opened when the run was planned, plan it again",
        )
    if page > pages:
        raise ItemError(Code.PAGE_NOT_FOUND, f"there is no page {page}: the document has {pages}")


def _pictures(data: bytes) -> int:
    try:
        with Image.open(io.BytesIO(data), formats=("TIFF",)) as image:
            return int(getattr(image, "n_frames", 1))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - not a TIFF, or damaged: then decoding its first picture tells what is wrong
        return 1


@contextmanager
def _opened(data: bytes, password: str | None, recover: bool) -> Iterator[Any]:
    """The open PDF, with its forms; what is wrong with it is told without its password."""
    import pypdfium2
    import pypdfium2.raw as pdfium

    if not recover and _is_cut_short(data):
        raise ItemError(Code.DECODE_TRUNCATED, "the PDF document ends too early: fetch it again")
    try:
        document = pypdfium2.PdfDocument(data, password=password)
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium.FPDF_ERR_PASSWORD:
            what = "the password is not that of this document" if password else "the document has a password"
            raise ItemError(Code.PASSWORD_WRONG, f"{what}: give it in manifest.columns.password") from error
        if error.err_code == pdfium.FPDF_ERR_SECURITY:
            why = "the PDF document is encrypted in a way that is not known here: save it without"
            raise ItemError(Code.DECODE_CORRUPT, why) from error
        if _is_cut_short(data):
            raise ItemError(Code.DECODE_TRUNCATED, "the PDF document ends too early: fetch it again") from error
        raise ItemError(Code.DECODE_CORRUPT, "the PDF document is damaged: replace the file") from error
    with document:
        with _coded("the document"):
            document.init_forms()  # before any page is loaded, else its fields are not drawn
        yield document


@contextmanager
def _coded(what: str) -> Iterator[None]:
    from pypdfium2 import PdfiumError

    try:
        yield
    except PdfiumError as error:
        raise ItemError(Code.DECODE_CORRUPT, f"{what} is damaged: replace the file") from error


def _is_cut_short(data: bytes) -> bool:
    """Whether the end of a PDF is missing, as far as its structure says."""
    said = _LENGTH.search(data[:1024])
    is_there = b"startxref" in data[-2048:] or b"startxref" in data
    return not is_there or (said is not None and int(said[1]) > len(data))


def _points(page: Any) -> tuple[float, float]:
    width, height = page.get_size()
    if not (width > 0 and height > 0):
        raise ItemError(Code.DECODE_CORRUPT, "the page has no size: replace the file")
    return width, height


def _drawn(page: Any, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    import pypdfium2
    import pypdfium2.raw as pdfium

    width, height = size
    pixels = np.full((height, width, 3), 255, np.uint8)
    memory = (ctypes.c_ubyte * pixels.nbytes).from_buffer(pixels.data)
    bitmap = pypdfium2.PdfBitmap.new_native(width, height, pdfium.FPDFBitmap_BGR, True, memory)
    how = (0, 0, width, height, 0, pdfium.FPDF_ANNOT | pdfium.FPDF_REVERSE_BYTE_ORDER)
    pdfium.FPDF_RenderPageBitmap(bitmap, page, *how)
    if page.formenv is not None:
        pdfium.FPDF_FFLDraw(page.formenv, bitmap, page, *how)
    bitmap.close()
    return pixels


def _text(page: Any, most: int) -> str:
    if not most:
        return ""
    text: str = page.get_textpage().get_text_bounded()
    return text.replace("\r\n", "\n").replace("\0", "").strip()[:most]
