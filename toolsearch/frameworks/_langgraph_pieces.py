"""What the adapters of LangChain and LangGraph share: definitions, the note, approvals, and answers as messages."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import SystemMessage, ToolMessage
from langgraph.types import interrupt

from toolsearch import CallPlan, ImagePart, Session, ToolCall, ToolResult
from toolsearch.frameworks.running import Approval, asking_plans, definitions

__all__ = ["FOUND", "approved", "message_of", "tools_of", "with_note"]

FOUND = "toolsearch_found"  # in the artifact of a message


def tools_of(session: Session) -> list[dict[str, Any]]:
    """The tools of the next request, in the form that every chat model of LangChain takes."""
    return [
        {"type": "function", "function": {"name": shown.name, "description": text, "parameters": schema}}
        for shown, text, schema in definitions(session.tools())
    ]


def with_note(said: Any, session: Session) -> Any:
    """The system message with the session's note behind it; None if there is neither."""
    if not (note := session.instructions()):
        return said
    if said is None:
        return SystemMessage(note)
    before = [{"type": "text", "text": said.content}] if isinstance(said.content, str) else said.content
    return SystemMessage([*before, {"type": "text", "text": f"\n\n{note}"}])


def approved(session: Session, asked: Any, approval: Approval | None) -> Any:
    """The call that a session answers, as a `ToolCall`; in place of one that does not run, a person's answer."""
    call = ToolCall(asked["id"], asked["name"], asked["args"])
    answers = (_ask(call, plan) for plan in asking_plans(session, call, approval))
    return next((answer for answer in answers if answer is not None), call)


def _ask(call: ToolCall, plan: CallPlan) -> ToolMessage | None:
    """Interrupts the graph with a question in LangChain's form; None if the person approves."""
    assert plan.tool is not None
    question = {"type": "tool_approval", "tool_call_id": call.id, "name": plan.tool.id, "args": plan.arguments}
    decision = interrupt({**question, "description": plan.tool.description})
    kind, told = (decision.get("type"), decision.get("message")) if isinstance(decision, dict) else ("", "")
    if kind == "approve":
        return None
    if kind == "respond":
        return ToolMessage(str(told), tool_call_id=call.id, name=call.name)
    why = f": {told}" if told else ""
    text = f"{plan.call.name!r} did not run: a person declined it{why}. Do not call it again for this."
    return ToolMessage(text, tool_call_id=call.id, name=call.name, status="error")


def message_of(result: ToolResult) -> ToolMessage:
    """An answer as LangGraph's message, images among it; the artifact keeps what was found."""
    images = [
        {"type": "image", "base64": part.data, "mime_type": part.media_type}
        for part in result.parts
        if isinstance(part, ImagePart)
    ]
    content: Any = [{"type": "text", "text": result.content}, *images] if images else result.content
    return ToolMessage(
        content, tool_call_id=result.call_id, name=result.name, status="success" if result.ok else "error",
        artifact={FOUND: list(result.found)} if result.found else None,
    )  # fmt: skip
