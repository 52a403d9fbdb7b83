"""Writes `llms.txt` at the root of the site: every page by its group, a line each (https://llmstxt.org).

The line is the page's `description` in its front matter, or else how its text begins.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
SENTENCE = re.compile(r".+?[.:](?=\s|$)")
ENOUGH = 50  # characters that say what a page is about


def summary(markdown: str) -> str:
    """The first sentences of a page's first paragraph, as plain text."""
    for block in COMMENT.sub("", markdown).split("\n\n"):
        text = " ".join(block.split())
        if text and not text.startswith(("#", "|", "```", "!", ">", "- ", ":::")):
            told = ""
            for sentence in SENTENCE.findall(LINK.sub(r"\1", text)) or [text]:
                if len(told) < ENOUGH:
                    told += sentence
            return told.rstrip(":.") + "."
    return ""


def index(config: Any, nav: Any, docs: Path) -> str:
    """The whole text, in the order of the navigation; a page that is in no group comes first."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    group = None
    for page in nav.pages:
        title = page.parent.title if page.parent else None
        if title != group or group is None:
            group = title
            lines += ["", f"## {group or 'Home'}", ""]
        told = page.meta.get("description") or summary((docs / page.file.src_uri).read_text("utf-8"))
        lines.append(f"- [{page.title}]({page.file.url}): {told}")
    return "\n".join(lines) + "\n"


_found: list[Any] = []


def on_nav(nav: Any, **_: Any) -> None:
    """Keeps the navigation for the end of the build, when the titles of pages are known."""
    _found[:] = [nav]


def on_post_build(config: Any, **_: Any) -> None:
    text = index(config, _found[0], Path(config.docs_dir))
    (Path(config.site_dir) / "llms.txt").write_text(text, "utf-8")
