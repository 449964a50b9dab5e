"""PDF documents made by a real writer (reportlab), with coloured rectangles at known places."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from PIL import Image
from reportlab.pdfgen.canvas import Canvas

RED, GREEN, BLUE, WHITE = [255, 0, 0], [0, 128, 0], [0, 0, 255], [255, 255, 255]

Drawing = Callable[[Canvas], None]


def pdf(*pages: Drawing, size: tuple[float, float] = (144, 72), encrypt: object = None) -> bytes:
    """A PDF of pages of `size` points, each drawn by its function; `encrypt` is reportlab's."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=size, encrypt=encrypt, invariant=True)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def filled(colour: str, *box: float, text: str = "") -> Drawing:
    """Draws a rectangle (left, bottom, width, height in points), and writes a text on it."""

    def draw(canvas: Canvas) -> None:
        canvas.setFillColor(colour)
        canvas.rect(*(box or (0, 0, 0, 0)), stroke=0, fill=1)
        if text:
            canvas.setFillColor("black")
            canvas.setFont("Helvetica", 10)
            for number, line in enumerate(text.split("\n")):
                canvas.drawString(4, 58 - 12 * number, line)

    return draw


def tiff(colours: Sequence[str], size: tuple[int, int] = (8, 4)) -> bytes:
    """A TIFF with a page of each colour."""
    first, *others = [Image.new("RGB", size, colour) for colour in colours]
    out = io.BytesIO()
    first.save(out, "TIFF", save_all=True, append_images=others)
    return out.getvalue()


def raw_pdf(page: bytes, *objects: bytes) -> bytes:
    """A PDF of one page, written object by object: `page` is object 3, the others are 4, 5, …"""
    catalogue, pages = b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    out, places = b"%PDF-1.7\n", []
    for number, body in enumerate([catalogue, pages, page, *objects], 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, len(out))
    return out + head + table + trailer


def stream(entries: bytes, data: bytes) -> bytes:
    """A stream object with these entries of its dictionary."""
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries, len(data), data)
