"""Whether an encoder can read a script: words in it must lie near to what they mean, and not to everything else.

What an encoder makes of letters that it hardly knows says little: any two texts of them are alike.
"""

from __future__ import annotations

from toolsearch.protocols import Encoder
from toolsearch.search.languages import LATIN, script_of

__all__ = ["can_read"]

MEANINGS = ("weather", "money", "calendar", "picture", "music", "door")
WORDS = {
    "Greek": "καιρός χρήματα ημερολόγιο εικόνα μουσική πόρτα",
    "Cyrillic": "погода деньги календарь картинка музыка дверь",
    "Hebrew": "מזג-אוויר כסף יומן תמונה מוזיקה דלת",
    "Arabic": "طقس نقود تقويم صورة موسيقى باب",
    "Devanagari": "मौसम पैसा कैलेंडर तस्वीर संगीत दरवाज़ा",
    "Thai": "อากาศ เงิน ปฏิทิน รูปภาพ ดนตรี ประตู",
    "Japanese": "天気 お金 カレンダー 写真 音楽 ドア",
    "Korean": "날씨 돈 달력 사진 음악 문",
    "Chinese": "天气 金钱 日历 图片 音乐 门",
}
# How much nearer the words must lie to what they mean than to the rest, as a share of what there is between the rest
# and equality: to be read well, and at all. The encoder "multilingual" has .37 (Arabic) to .65; "static" has .0
# (Arabic) to .18 (Cyrillic), and .24 and .31 for Japanese and Chinese.
WELL, AT_ALL = 1 / 3, 0.2

_known: dict[tuple[str, str], float] = {}  # by encoder and script


def can_read(encoder: Encoder, text: str, *, well: bool) -> bool:
    """Whether the encoder can read the script of a text; it is asked once a script.

    An encoder that fails is taken to read: whoever searches with it will see what is wrong.
    """
    script = script_of(text)
    if script == LATIN or script not in WORDS:
        return True
    try:
        key = (encoder.name, script)
        if key not in _known:
            _known[key] = _nearness(encoder, WORDS[script].split())
    except Exception:
        return True
    return _known[key] >= (WELL if well else AT_ALL)


def _nearness(encoder: Encoder, words: list[str]) -> float:
    """How much nearer the words lie to their own meanings than to the others: 1 where they are the same."""
    import numpy as np

    rows = np.asarray(encoder.encode([*words, *MEANINGS], query=True), np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    cosines = rows[: len(words)] @ rows[len(words) :].T
    own = float(np.trace(cosines)) / len(words)
    others = (float(cosines.sum()) / len(words) - own) / (len(MEANINGS) - 1)
    return (own - others) / max(1 - others, 1e-9)
