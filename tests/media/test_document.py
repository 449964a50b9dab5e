"""Pages of documents: the right page, upright, of the right size, or the right code."""

from __future__ import annotations

import random

import numpy as np
import pytest
from PIL import Image
from reportlab.lib import colors
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from pipeline.config import MediaConfig
from pipeline.errors import Code, ItemError
from pipeline.identity import media_uuid
from pipeline.media.document import PageScale, count_pages, decode_page
from pipeline.media.load import MediaLoader
from pipeline.media.shrink import PixelBudget
from pipeline.models.registry import load_spec
from tests.media.documents import BLUE, GREEN, RED, WHITE, filled, pdf, raw_pdf, stream, tiff
from tests.media.made import saved


def drawn(
    data: bytes,
    page: int = 1,
    dpi: float = 72,
    budget: PixelBudget | None = None,
    max_pixels: int = 10**7,
    **options: object,
) -> np.ndarray:
    scale = PageScale(dpi)
    pixels, _ = decode_page(
        data, page=page, scale=scale, budget=budget or PixelBudget(), max_pixels=max_pixels, **options
    )
    return pixels


def refusal(data: bytes, page: int = 1, **options: object) -> ItemError:
    with pytest.raises(ItemError) as caught:
        drawn(data, page, **options)
    return caught.value


TWO = pdf(filled("red", 0, 0, 72, 36), filled("blue", 72, 36, 72, 36))


def test_each_page_shows_what_is_drawn_on_it_and_where() -> None:
    first, second = drawn(TWO, 1), drawn(TWO, 2, dpi=144)
    assert (first.shape, first.dtype) == ((72, 144, 3), np.uint8)
    # PDF counts from the lower left: the red quarter is below on the left, the blue one above on the right.
    assert [first[y, x].tolist() for y, x in ((54, 36), (18, 36), (54, 108))] == [RED, WHITE, WHITE]
    assert second.shape == (144, 288, 3)
    assert [second[y, x].tolist() for y, x in ((36, 216), (108, 216), (36, 72))] == [BLUE, WHITE, WHITE]
    assert count_pages(TWO)[1] == {"pages": 2}


def test_rotation_and_crop_box_are_applied() -> None:
    def turned(canvas: Canvas) -> None:
        filled("red", 0, 0, 72, 36)(canvas)
        canvas.setPageRotation(90)

    # The writer makes this page 72 wide and 144 high, to be turned clockwise by a quarter: its lower edge is
    # then the left one, so the red of the lower quarter fills the left quarter.
    page = drawn(pdf(turned))
    assert page.shape == (72, 144, 3)
    assert [page[y, x].tolist() for y, x in ((5, 30), (66, 30), (36, 40), (36, 110))] == [
        RED,
        RED,
        WHITE,
        WHITE,
    ]

    def cropped(canvas: Canvas) -> None:
        filled("red", 0, 0, 72, 36)(canvas)
        canvas.setCropBox((36, 18, 36 + 60, 18 + 40))

    page = drawn(pdf(cropped))
    # Red reaches from the left edge of the crop box 36 points to the right, and 18 of its 40 points up.
    assert page.shape == (40, 60, 3)
    assert [page[y, x].tolist() for y, x in ((39, 0), (23, 34), (20, 34), (39, 37))] == [RED, RED, WHITE, WHITE]


def test_forms_and_annotations_are_drawn_as_a_viewer_shows_them() -> None:
    def form(canvas: Canvas) -> None:
        canvas.acroForm.textfield(
            name="field", x=10, y=10, width=60, height=20, fillColor=colors.green, borderWidth=0, value=""
        )

    def note(canvas: Canvas) -> None:
        canvas.highlightAnnotation(
            "seen", Rect=[80, 10, 130, 30], QuadPoints=[80, 30, 130, 30, 80, 10, 130, 10]
        )

    assert drawn(pdf(form))[50, 40].tolist() == GREEN
    assert drawn(pdf(note))[50, 100].tolist() != WHITE


def test_a_page_is_as_large_as_asked_and_never_larger_than_the_budget() -> None:
    assert PageScale(150).size(612, 792, PixelBudget()) == (1275, 1650)
    assert PageScale(150, max_side=1000).size(612, 792, PixelBudget()) == (773, 1000)
    assert PageScale(150).size(612, 792, PixelBudget(max_side=825)) == (638, 825)
    assert PageScale(72).size(0.1, 0.1, PixelBudget()) == (1, 1)


def test_a_huge_page_is_drawn_small_or_refused_before_it_is_drawn() -> None:
    five_metres = 500 / 2.54 * 72
    huge = pdf(filled("blue", 0, 0, five_metres, five_metres), size=(five_metres, five_metres))
    page = drawn(huge, dpi=300, budget=PixelBudget(max_pixels=10_000), max_pixels=10_000)
    assert page.shape == (100, 100, 3)
    assert page[50, 50].tolist() == BLUE
    refused = refusal(huge, dpi=300, max_pixels=200_000_000)
    assert refused.code is Code.TOO_LARGE
    assert "59055x59055" in refused.reason


def test_text_comes_with_the_page_up_to_its_bound() -> None:
    data = pdf(filled("white", text="Total 42,10 €\nPaid"), filled("white", text="second"))
    options = {"scale": PageScale(), "budget": PixelBudget(), "max_pixels": 10**7}
    assert decode_page(data, page=1, text_chars=100, **options)[1] == {"text": "Total 42,10 €\nPaid"}
    assert decode_page(data, page=2, text_chars=3, **options)[1] == {"text": "sec"}
    assert decode_page(data, page=1, **options)[1] == {"text": ""}


@pytest.mark.parametrize("strength", [40, 128])
def test_an_encrypted_document_opens_with_either_of_its_passwords_only(strength: int) -> None:
    data = pdf(filled("red", 0, 0, 144, 72), encrypt=StandardEncryption("geheim", "owner", strength=strength))
    assert drawn(data, password="geheim")[30, 70].tolist() == RED
    assert drawn(data, password="owner")[30, 70].tolist() == RED
    for password in (None, "wrong"):
        refused = refusal(data, password=password)
        assert refused.code is Code.PASSWORD_WRONG
        assert "manifest.columns.password" in refused.reason
        assert "wrong" not in refused.reason
    assert count_pages(data, password="geheim")[1] == {"pages": 1}
    with pytest.raises(ItemError):
        count_pages(data)
    free = pdf(filled("red", 0, 0, 144, 72), encrypt=StandardEncryption("", "owner", strength=strength))
    assert drawn(free)[30, 70].tolist() == RED


def test_pages_of_a_tiff_are_counted_and_shown_the_same_way() -> None:
    data = tiff(["red", "blue", "white"])
    assert [drawn(data, page)[2, 3].tolist() for page in (1, 2, 3)] == [RED, BLUE, WHITE]
    assert count_pages(data)[1] == {"pages": 3}
    picture = saved(Image.effect_noise((30, 20), 80))
    assert count_pages(picture)[1] == {"pages": 1}
    assert drawn(picture).shape == (20, 30, 3)


@pytest.mark.parametrize(
    ("data", "page", "code", "told"),
    [
        (TWO, 3, Code.PAGE_NOT_FOUND, "has 2"),
        (TWO, 0, Code.PAGE_NOT_FOUND, "media.document.pages"),
        (tiff(["red", "blue"]), 3, Code.PAGE_NOT_FOUND, "has 2"),
        (b"", 1, Code.EMPTY_FILE, "0 bytes"),
        (b"%PDF-1.7\n" + b"\0" * 500, 1, Code.DECODE_TRUNCATED, "too early"),
        (TWO[: len(TWO) * 2 // 3], 1, Code.DECODE_TRUNCATED, "too early"),
        (b"%PDF-1.7\nnothing\nstartxref\n9\n%%EOF", 1, Code.DECODE_CORRUPT, "damaged"),
        (b"%!PS-Adobe-3.0\nshowpage\n", 1, Code.NOT_MEDIA, "ps2pdf"),
        (b"<!doctype html><html></html>", 1, Code.NOT_MEDIA, "HTML page"),
    ],
)
def test_what_cannot_be_shown_has_its_code(data: bytes, page: int, code: Code, told: str) -> None:
    refused = refusal(data, page)
    assert refused.code is code
    assert told in refused.reason


def test_a_document_behind_some_junk_is_still_one() -> None:
    assert drawn(b"\r\n--boundary\r\nX: y\r\n\r\n" + TWO, 2).shape == (72, 144, 3)


def loader(**media: object) -> MediaLoader:
    return MediaLoader.of(MediaConfig.model_validate(media), load_spec("qwen2_5_vl"))


def test_pages_come_through_the_child_each_with_its_own_identity() -> None:
    one = loader(document={"dpi": 72})
    (first, red), (second, blue) = (one.load("image", TWO, page=page) for page in (1, 2))
    assert red.pixels[54, 36].tolist() == RED
    assert blue.pixels[18, 108].tolist() == BLUE
    assert len({first, second, media_uuid(TWO)}) == 3
    finer, sharp = loader(document={"dpi": 144}).load("image", TWO, page=1)
    assert finer == first
    assert len({red.uuid, blue.uuid, sharp.uuid}) == 3
    assert one.pages(TWO) == 2


def test_only_settings_that_change_pixels_are_part_of_the_recipe() -> None:
    plain = loader().settings("image")
    assert loader(document={"pages": "2-", "text_chars": 9, "max_pages": 3}).settings("image") == plain
    assert loader(document={"dpi": 72}).settings("image") != plain
    assert loader(document={"max_side": 900}).settings("image") != plain


def test_a_damaged_document_is_taken_only_on_request_and_says_so() -> None:
    cut = TWO[: TWO.rindex(b"startxref")]
    with pytest.raises(ItemError) as caught:
        loader().load("image", cut, page=1)
    assert caught.value.code is Code.DECODE_TRUNCATED
    lenient = loader(damaged="recover")
    assert lenient.load("image", cut, page=1)[1].recovered
    assert not lenient.load("image", TWO, page=1)[1].recovered


def test_a_document_says_its_pages_without_drawing_any() -> None:
    many = pdf(*[filled("red", 0, 0, 9, 9)] * 300)
    assert count_pages(many)[1] == {"pages": 300}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (TWO, "FILE.pdf#page=1"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "ps2pdf"),
        (b"\xc5\xd0\xd3\xc6\x20\0\0\0" + b"%!PS-Adobe-3.0 EPSF-3.0\n", "ps2pdf"),
    ],
)
def test_a_document_in_place_of_an_image_is_told_what_to_do(data: bytes, told: str) -> None:
    with pytest.raises(ItemError) as caught:
        loader().load("image", data)
    assert caught.value.code is Code.NOT_MEDIA
    assert told in caught.value.reason


def test_forms_that_draw_each_other_a_billion_times_cost_themselves() -> None:
    leaf = stream(b"/Type /XObject /Subtype /Form /BBox [0 0 99 99]", b"0 0 9 9 re f")
    levels = [
        stream(
            b"/Type /XObject /Subtype /Form /BBox [0 0 99 99] /Resources << /XObject << /F %d 0 R >> >>"
            % below,
            b"/F Do " * 10,
        )
        for below in range(4, 12)
    ]
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 13 0 R "
    page += b"/Resources << /XObject << /F 12 0 R >> >> >>"
    impatient = loader(decode_seconds=1)
    with pytest.raises(ItemError) as caught:
        impatient.load("image", raw_pdf(page, leaf, *levels, stream(b"", b"/F Do")), page=1)
    assert caught.value.code is Code.DECODE_TIMEOUT
    assert loader().load("image", TWO, page=1)[1].pixels.shape[2] == 3


def test_damaged_documents_give_pixels_or_a_code_and_nothing_else() -> None:
    chance = random.Random(20)
    one, codes = loader(decode_seconds=20, damaged="recover"), set()
    sound = pdf(*(filled("red", 0, 0, 72, 36, text=f"page {number}") for number in range(3)))
    for _ in range(60):
        damaged = bytearray(sound[: chance.randint(20, len(sound))] if chance.random() < 0.3 else sound)
        for _ in range(chance.choice([1, 10, 100])):
            damaged[chance.randrange(5, len(damaged))] = chance.randrange(256)
        try:
            assert one.load("image", bytes(damaged), page=2)[1].pixels.ndim == 3
        except ItemError as error:
            codes.add(error.code)
    assert Code.DECODE_CORRUPT in codes or Code.DECODE_TRUNCATED in codes
    assert one.load("image", sound, page=2)[1].pixels.ndim == 3
