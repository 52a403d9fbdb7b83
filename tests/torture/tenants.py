"""Somebody who may not see some tools tries to find, read and run them, in every way a model could."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.torture import Outcome
from toolsearch import Caller, Catalog, Session, StateError, ToolCall, ToolSearch
from toolsearch.layers import rules

INDEXES = ("keyword", "regex", "hybrid", "vector", "whoosh", "tantivy", "faiss")
MODES = ("append", "bridge", "auto", "static")
POLICIES = ("show", "run", "refuse")
WAYS = ("roles", "visible", "rules")

NAMES = ("rotate_key", "wipe_all")
SECRETS = ("vaultsrv", "hiddencat", "rotate_key", "wipe_all", "secretdesc", "hiddenenum", "hiddenarg", "leak")
ADMIN = Caller("root", ["admin"], "acme")
EVE = Caller("eve", ["user"], "other")


def _spellings(name: str) -> list[str]:
    """How somebody might write the name of a tool that is hidden."""
    return [
        name, name.upper(), name.title(), name.replace("_", "-"), name.replace("_", " "), name[:-1], name[1:],
        f"vaultsrv/{name}", f"vaultsrv_{name}", f"mcp__vaultsrv__{name}", f"functions.{name}",
        f"functions.vaultsrv/{name}", f"select:{name}", f"{name}_b8770a49", f" {name} ", f"{name}\0",
        f"{name}\u200b", "\u200b".join(name), name.replace("o", "\u043e"), name.replace("a", "\uff41"),
    ]  # fmt: skip


SPELLED = [spelled for name in NAMES for spelled in _spellings(name)]
QUERIES = [
    *SPELLED, *(f"select:{spelled}" for spelled in SPELLED), "select:*", "select:", "*", ".*", "^rotate.*", "zyxxyq",
    "SECRETDESC", "HIDDENENUM", "hiddenarg", "hiddencat", "vaultsrv", "category:hiddencat", "(?i)rotate|zyx", "[a-z]+",
    "rotat", "zyxxy",
]  # fmt: skip


class Vault:
    """A catalog with two hidden tools, and who tries to get at them."""

    def __init__(self, outcome: Outcome, index: str, mode: Any, policy: Any, way: str) -> None:
        self.outcome = outcome
        self.label = f"{index} {mode} {policy} {way}"
        self.ran: list[str] = []
        self.probes = 0
        hidden = [self._hidden(name, way) for name in NAMES]
        public = [
            {
                "name": f"pub_{number}",
                "server": "open",
                "category": "pub",
                "description": f"Public thing {number} rotate keys",
                "run": lambda: "p",
            }
            for number in range(20)
        ]
        visible: Any = None
        if way == "visible":
            visible = lambda tool, caller: tool.server != "vaultsrv" or "admin" in (caller.roles if caller else ())  # noqa: E731
        elif way == "rules":
            visible = rules(roles={"vaultsrv/*": ["admin"]})
        self.mode = mode
        self.search = ToolSearch(Catalog(hidden + public), index, mode=mode, not_loaded=policy, visible=visible)

    def _hidden(self, name: str, way: str) -> dict[str, Any]:
        def run(**arguments: object) -> str:
            self.ran.append(name)
            return "LEAK"

        schema = {"type": "object", "properties": {"hiddenarg": {"enum": ["HIDDENENUM"]}}}
        return {
            "name": name,
            "server": "vaultsrv",
            "category": "hiddencat",
            "description": "Rotate zyxxyq keys of SECRETDESC.",
            "input_schema": schema,
            "run": run,
            **({"roles": ["admin"]} if way == "roles" else {}),
        }

    def check(self, what: str, text: object, sent: str = "") -> None:
        """Whether a text tells something of the hidden tools that was not in what was sent."""
        self.probes += 1
        told = str(text).casefold()
        for secret in SECRETS:
            if secret in told and secret not in sent.casefold():
                self.outcome.violations.append(f"{self.label}: {what} tells {secret!r}: {str(text)[:200]}")

    def probe(self, session: Session, rng: random.Random) -> None:
        """Reads all that the session shows, and tries every spelling and every query, in any order."""
        for shown in session.tools():
            self.check("the request", (shown.name, shown.tool.description, dict(shown.tool.input_schema)))
        self.check("the note", session.instructions())
        calls = list(self._calls())
        rng.shuffle(calls)
        for name, arguments, sent in calls:
            result = session.handle(ToolCall("1", name, arguments))
            data = json.dumps(result.data) if isinstance(result.data, dict) else ""
            self.check(f"{name} {arguments!r}", result.content + data, sent)

    def _calls(self) -> Iterator[tuple[str, Any, str]]:
        """A name, arguments, and what they tell themselves."""
        for spelled in SPELLED:
            for arguments in ({}, {"hiddenarg": "x"}, "{bad"):
                sent = f"{spelled} {arguments}"
                yield spelled, arguments, sent
                if self.mode == "bridge":
                    yield "call_tool", {"name": spelled, "arguments": arguments}, sent
        for query in QUERIES:
            for category in (None, "hiddencat", "pub"):
                more = {"category": category} if category else {}
                yield "search_tools", {"queries": [query], **more}, f"{query} {category}"

    def lose_the_role(self) -> None:
        """An administrator who has found the tools, and then may not use them any more."""
        admin = self.search.session("admin", caller=ADMIN)
        admin.handle(ToolCall("0", "search_tools", {"queries": list(NAMES)}))
        state = admin.export()
        before = len(self.ran)
        former = self.search.session("admin", caller=Caller("root", [], "acme"))
        for shown in former.tools():
            self.check("a role that is lost", (shown.name, shown.tool.description, dict(shown.tool.input_schema)))
        result = former.handle(ToolCall("1", "rotate_key", {"hiddenarg": "HIDDENENUM"}))
        self.check("a role that is lost", result.content, "rotate_key")
        for claimed in (state, {**state, "user": "eve", "tenant": "other"}):
            self._restore(claimed)
        if len(self.ran) > before:
            self.outcome.violations.append(f"{self.label}: a hidden tool ran for a caller who lost the role")

    def _restore(self, state: dict[str, object]) -> None:
        """Eve brings the state of the administrator, as it is or with her name in it."""
        try:
            session = self.search.restore(state, caller=EVE)
        except StateError as error:
            self.check("a refused state", error, "admin")
            return
        if state["user"] != "eve":
            self.outcome.violations.append(f"{self.label}: the state of another caller was restored")
        for shown in session.tools():
            if not shown.built_in:
                self.check("a restored state", (shown.name, shown.tool.description))
        self.check("a restored state", session.handle(ToolCall("1", "rotate_key", {})).content, "rotate_key")


def _settings() -> Iterator[tuple[str, str, str, str]]:
    """Every way with `keyword`, and the other indexes with the delivery that matters to them."""
    for mode in MODES:
        for policy in POLICIES:
            for way in WAYS:
                yield "keyword", mode, policy, way
    for index in INDEXES[1:]:
        for mode in ("append", "bridge"):
            yield index, mode, "show", "roles"


def tenants(seed: int = 1) -> Outcome:
    """Probes every combination of index, mode, policy and filter."""
    rng, outcome = random.Random(seed), Outcome()
    probes = vaults = ran = 0
    for index, mode, policy, way in _settings():
        vault = Vault(outcome, index, mode, policy, way)
        vault.probe(vault.search.session("eve", caller=EVE), rng)
        if vault.ran:
            outcome.violations.append(f"{vault.label}: {len(vault.ran)} calls of hidden tools ran")
        vault.lose_the_role()
        vaults, probes, ran = vaults + 1, probes + vault.probes, ran + len(vault.ran)
    outcome.figures = {"settings": vaults, "probes": probes, "hidden tools that ran": ran}
    return outcome
