"""Every answer that the loop gives in a tool's place, or the model's. Each says what happened, then what to do next."""

from __future__ import annotations

from toolsearch.calls import Status, ToolResult
from toolsearch.calls.answers import answer
from toolsearch.events.facts import JudgedCall
from toolsearch.support.text import reason_of

__all__ = [
    "ask_failed",
    "changed",
    "check_failed",
    "declined",
    "declined_before",
    "deferred",
    "expired",
    "failed",
    "gate_failed",
    "half_said",
    "interrupted",
    "limited",
    "not_asked_again",
    "not_passed_on",
    "not_provided",
    "not_run",
    "refused",
    "said_nothing",
    "stopped",
    "timed_out",
    "too_deep",
    "unanswered",
    "unavailable",
    "without_answer",
]


def _answer(call: JudgedCall, status: Status, text: str, data: object = None) -> ToolResult:
    return answer(call.id, call.name, status, f"{call.name!r} {text}", data)


def declined(call: JudgedCall, reason: str = "") -> ToolResult:
    """A person decided that the call may not run."""
    why = f" ({reason})" if reason else ""
    text = (
        f"did not run: it was declined{why}. That is a decision, not an error: do not try again or work around it in "
        "this turn; acknowledge it and go on without."
    )
    return _answer(call, "denied", text, {"rejected": True, "reason": reason or "rejected by the user"})


def declined_before(call: JudgedCall) -> ToolResult:
    """A call of a tool that a person declined earlier in the turn."""
    text = (
        "did not run: it was declined earlier in this turn, and nobody was asked again. That decision stands until the "
        "user says something new: acknowledge it and go on without."
    )
    return _answer(call, "denied", text, {"rejected": True, "reason": "declined earlier in this turn"})


def expired(call: JudgedCall, kind: str = "approval") -> ToolResult:
    """Nobody decided, or answered, in time."""
    if kind != "approval":
        return _answer(call, "expired", f"got no answer: nobody answered in time. {_without(kind)}")
    text = "did not run: nobody approved it in time. Do not try again in this turn; say so."
    return _answer(call, "expired", text, {"rejected": True, "reason": "nobody decided in time", "expired": True})


def ask_failed(call: JudgedCall) -> ToolResult:
    """The person who was to decide could not be asked."""
    text = "did not run: it needs an approval, and nobody could be asked. Do not try again in this turn; say so."
    return _answer(call, "denied", text, {"rejected": True, "reason": "asking failed"})


def refused(call: JudgedCall, reason: str) -> ToolResult:
    """A check of the program refused the call."""
    why = reason.rstrip(" .") or "a check of the program refused it"
    text = f"did not run: {why}. Do not try it again unchanged: correct what is wrong, or go on without it."
    return _answer(call, "denied", text, {"rejected": True, "reason": why})


def check_failed(call: JudgedCall) -> ToolResult:
    """A check of the program raised an exception."""
    text = "did not run: the check before it failed. Do not try again in this turn; say so."
    return _answer(call, "denied", text)


def unavailable(call: JudgedCall) -> ToolResult:
    """The caller may not use the tool. The text is the one for a tool that does not exist."""
    return _answer(call, "unknown", "did not run: there is no such tool. Use a listed tool, or search for another.")


def limited(call: JudgedCall, text: str) -> ToolResult:
    """A limit of the turn is reached; `text` says which, and what to do."""
    return _answer(call, "limit", f"did not run: {text}")


def not_run(call: JudgedCall) -> ToolResult:
    """The program ended the turn with this reply, and runs none of its calls."""
    return _answer(
        call, "cancelled", "did not run: the program ended the turn here. Call it again if it is still needed."
    )


def deferred(call: JudgedCall, most: int) -> ToolResult:
    """A person is asked at most `most` things at once."""
    at_once = "one thing" if most == 1 else f"{most} things"
    return _answer(
        call, "limit", f"did not run: the user is asked {at_once} at a time. Call it again in the next step."
    )


def not_provided(call: JudgedCall, reason: str = "", kind: str = "question") -> ToolResult:
    """The person who was asked gave no answer; `kind` is what was asked for."""
    why = f" ({reason})" if reason else ""
    return _answer(call, "denied", f"got no answer: the user provided nothing{why}. {_without(kind)}")


def not_asked_again(call: JudgedCall, kind: str = "question") -> ToolResult:
    """A call of a tool that asked earlier in the turn and got no answer: no dialog opens again in it."""
    text = f"did not run: the user was asked earlier in this turn and provided nothing. {_without(kind)}"
    return _answer(call, "denied", text, {"rejected": True, "reason": "not provided earlier in this turn"})


def _without(kind: str) -> str:
    """What to do when a person provides nothing."""
    how = f"upload the {kind}" if kind in ("file", "image") else "answer"
    return (
        "Do not ask again in this turn: go on without it, or say what is missing and ask the user to "
        f"{how} in a new message."
    )


def gate_failed(call: JudgedCall) -> ToolResult:
    """The layer that was to judge the call raised an exception."""
    text = "did not run: it needs an approval, and asking for it failed. Do not try again in this turn; say so."
    return _answer(call, "denied", text)


def interrupted(call: JudgedCall) -> ToolResult:
    """The process that began the call did not finish it."""
    text = "was interrupted: it was begun, and its outcome is not known. Check before you try again."
    return _answer(call, "interrupted", text)


def stopped(call: JudgedCall, *, cancelled: bool, begun: bool) -> ToolResult:
    """The turn ended before the call had its answer: `interrupted` if it may have run, `cancelled` if it did not."""
    status: Status = "interrupted" if begun else "cancelled"
    why = "the user stopped the turn" if cancelled else "the program ended the turn"
    state = "it may still be running, so its effect is not known" if begun else "it did not run"
    return _answer(call, status, f"was {status}: {why}, and {state}. Ask before you try again.")


def changed(call: JudgedCall) -> ToolResult:
    """The definition of the tool changed after its call was judged."""
    text = "did not run: the tool has changed since this call was made. Call it again as it is defined now."
    return _answer(call, "expired", text)


def timed_out(call: JudgedCall, error: TimeoutError) -> ToolResult:
    """The tool did not answer in time."""
    return _answer(call, "timed_out", f"timed out: {error}. It may still be running. Check before you try again.")


def failed(call: JudgedCall, error: BaseException) -> ToolResult:
    """A layer around the tool raised an exception, or the tool ended without an answer."""
    return _answer(call, "failed", f"failed: {reason_of(error)}. Say what happened.")


def too_deep(call: JudgedCall, depth: int) -> ToolResult:
    """Agents call each other too deep."""
    text = f"did not run: agents may call each other {depth} deep, and this is deeper. Do the task yourself, or say so."
    return _answer(call, "limit", text)


def not_passed_on(call: JudgedCall) -> ToolResult:
    """A called agent waits for a person, and nobody can be asked from here."""
    text = (
        "stopped: it waits for a decision of a person, who cannot be asked from here. Do not try again in this turn; "
        "say so."
    )
    return _answer(call, "interrupted", text)


def said_nothing(call: JudgedCall, reason: str) -> ToolResult:
    """A called agent ended its turn without a text."""
    return _answer(call, "failed", f"ended without an answer: {reason}. Ask it for less, or go on without it.")


def half_said(call: JudgedCall, reason: str, text: str) -> ToolResult:
    """A called agent ended its turn with a text that is no whole answer."""
    return _answer(
        call, "failed", f"gave no whole answer ({reason}). Ask it for less, or go on without. It said: {text}"
    )


def unanswered(call: JudgedCall) -> ToolResult:
    """No layer gave an answer."""
    return _answer(call, "failed", "has no answer: a layer of the program gave none, and it may have run. Say so.")


_STOPPED = {
    "round limit": "it needed more steps than I may take at once",
    "step limit": "it needed more steps than I may take at once",
    "call limit": "it needed more calls of tools than I may make at once",
    "search limit": "I searched for tools more often than I may at once",
    "unknown tools": "I called tools that do not exist",
    "repeated call": "I was repeating the same step",
    "token budget": "it needed more than its budget allows",
    "cost budget": "it needed more than its budget allows",
}


def without_answer(reason: str) -> str:
    """What the user reads if a limit ended the turn and the model had said nothing in it; empty for other reasons."""
    if reason == "proposed":
        return "Everything that I proposed has been decided. Tell me what to do next."
    if reason not in _STOPPED:
        return ""
    why = _STOPPED[reason]
    return f"I stopped before I had an answer to your request: {why}. Ask me to go on, or ask for a smaller part of it."
