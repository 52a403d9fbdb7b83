"""Requests in scripts without spaces, and in scripts that an encoder cannot read."""

import pytest

from toolsearch import ToolSearch
from toolsearch_indexes.encoders.static import StaticEncoder
from toolsearch_indexes.readable_scripts import WORDS, can_read

ASK = (
    "您好我是上周在你们网店买了一台咖啡机的顾客收到货以后发现外壳上面有很明显的划痕而且缺少说明书"
    "客服电话一直打不通所以现在想请你们尽快帮我提交退款申请"
)
JAPANESE = (
    "先週そちらのオンラインショップでコーヒーメーカーを購入した者ですが商品が届いたところ外側に大きな傷があり"
    "しかも説明書が入っておらずお客様窓口の電話も一日中つながらないためできるだけ早く返金を申請したいです"
)


@pytest.mark.parametrize("index", ["keyword", "hybrid", "whoosh", "tantivy"])
@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (("提交退款申请", "今日菜单列表"), ASK), (("提交退款申请", "今日菜单列表"), "很高兴认识大家" * 60 + ASK),
        (("返金を申請する", "本日のメニュー一覧"), JAPANESE),
    ],
    ids=["Chinese", "behind 400 characters", "Japanese"],
)  # fmt: skip
def test_the_end_of_a_long_request_without_spaces_counts(index: str, texts: tuple[str, str], query: str) -> None:
    """K01: all behind the 64th pair of characters was ignored."""
    tools = [
        {"name": name, "description": text} for name, text in zip(("order_refund", "menu_list"), texts, strict=True)
    ]
    assert [hit.tool.name for hit in ToolSearch(tools, index).find(query)] == ["order_refund"]


def test_the_default_encoder_reads_english_and_some_of_chinese() -> None:
    encoder = StaticEncoder()
    assert can_read(encoder, "unlock the door", well=True)
    assert {script for script in WORDS if can_read(encoder, WORDS[script], well=False)} == {"Chinese", "Japanese"}
    assert not any(can_read(encoder, words, well=True) for words in WORDS.values())
