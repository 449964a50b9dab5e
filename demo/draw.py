"""Draws pictures and short videos together with their true answers. Needs Pillow and numpy only.

>>> import random
>>> draw_shapes(random.Random(7), 224, 168).answer
'a yellow cross, a pink cross and a red diamond in a row'
"""

from demo.drawing.kinds import Clip, Drawing, Mark
from demo.drawing.shapes import draw_shapes
from demo.drawing.text import draw_text
from demo.drawing.video import draw_video

__all__ = ["Clip", "Drawing", "Mark", "draw_shapes", "draw_text", "draw_video"]
