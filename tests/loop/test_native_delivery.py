"""Native delivery in the loop: what answers bring is in the journal, and so in every request after it."""

from toolsearch import Agent, ToolCall, ToolResult, ToolSearch
from toolsearch.calls import NativeDelivery
from toolsearch.events.facts import Answers, Reply, UserSaid
from toolsearch.events.requests import Call, CallModel
from toolsearch.layers import memory
from toolsearch.protocols import ToolSteps
from toolsearch.stores import MemoryStore

TOOLS = [{"name": name, "description": f"{name}.", "run": lambda: "done"} for name in ("rotate_key", "send_mail")]


BY_VALUE = NativeDelivery(with_messages=True)


class _Model:
    """A model that delivers natively and plays a script; it keeps its requests."""

    def __init__(self, *script: Reply, native: NativeDelivery | None = BY_VALUE) -> None:
        self.script, self.native = list(script), native
        self.requests: list[CallModel] = []

    def __call__(self, request: CallModel) -> Reply:
        self.requests.append(request)
        return self.script.pop(0)


def _calls(name: str, **arguments: object) -> Reply:
    return Reply(calls=(ToolCall(name, name, arguments),))


def _listed(request: CallModel) -> list[str]:
    return [shown.name for shown in request.listed()]


def _brought(request: CallModel) -> list[str]:
    answers = [result for message in request.transcript if isinstance(message, Answers) for result in message.results]
    return [loaded.name for result in answers for loaded in result.loaded]


def _agent(model: _Model, store: MemoryStore, **options: object) -> Agent:
    return Agent(model, ToolSearch(TOOLS, "keyword", mode="native", results=1), store=store, **options)  # type: ignore[arg-type]


def test_a_found_tool_is_in_the_answer_and_not_in_the_list_also_after_a_restart() -> None:
    store = MemoryStore()
    first = _Model(_calls("search_tools", queries=["rotate key"]), _calls("rotate_key"), Reply("Rotated."))
    assert _agent(first, store, actions="run").run("Rotate it.", conversation_id="c").text == "Rotated."
    assert [_listed(request) for request in first.requests] == [["search_tools"]] * 3
    assert [_brought(request) for request in first.requests] == [[], ["rotate_key"], ["rotate_key"]]
    again = _Model(Reply("Yes."))
    _agent(again, store, actions="run").run("Sure?", conversation_id="c")
    assert (_listed(again.requests[0]), _brought(again.requests[0])) == (["search_tools"], ["rotate_key"])


def test_an_answer_that_a_layer_replaced_brings_nothing_so_the_tool_is_listed() -> None:
    class _Replace:
        def around_tool(self, call: Call) -> ToolSteps:
            result = yield call
            return ToolResult(call.judged.id, call.judged.name, "ok", "Found something.") if result else result

    model = _Model(_calls("search_tools", queries=["rotate key"]), Reply("Done."))
    _agent(model, MemoryStore(), layers=[_Replace()]).run("Rotate it.")
    assert _listed(model.requests[1]) == ["search_tools", "rotate_key"]


def test_a_call_of_a_tool_that_was_not_loaded_brings_it() -> None:
    model = _Model(_calls("send_mail"), Reply("Done."))
    _agent(model, MemoryStore()).run("Send it.")
    assert (_listed(model.requests[1]), _brought(model.requests[1])) == (["search_tools"], ["send_mail"])


def test_what_an_answer_to_a_call_brought_is_not_listed_in_the_next_turn_either() -> None:
    store = MemoryStore()
    model = _Model(_calls("rotate_key"), Reply("Found."), Reply("Yes."), Reply("Yes."))
    _agent(model, store).run("Rotate it.", conversation_id="c")
    _agent(model, store).run("Sure?", conversation_id="c")
    assert [_listed(request) for request in model.requests] == [["search_tools"]] * 3


def test_a_pre_selected_tool_comes_with_the_message() -> None:
    model = _Model(Reply("Done."))
    _agent(model, MemoryStore(), preselect=1).run("rotate key")
    (said,) = model.requests[0].transcript
    assert isinstance(said, UserSaid)
    assert ([loaded.name for loaded in said.loaded], _listed(model.requests[0])) == (["rotate_key"], ["search_tools"])


def test_where_messages_were_cut_the_tools_that_they_brought_are_listed() -> None:
    store = MemoryStore()
    model = _Model(_calls("search_tools", queries=["rotate key"]), Reply("Found."), Reply("Still here."))
    agent = _agent(model, store, layers=[memory(keep="answers")])
    agent.run("Find it.", conversation_id="c")
    agent.run("Go on.", conversation_id="c")
    assert (_brought(model.requests[2]), _listed(model.requests[2])) == ([], ["search_tools", "rotate_key"])


def test_a_conversation_goes_on_with_a_model_that_cannot() -> None:
    store = MemoryStore()
    _agent(_Model(_calls("search_tools", queries=["rotate key"]), Reply("Found.")), store).run(
        "Go", conversation_id="c"
    )
    plain = _Model(_calls("rotate_key"), Reply("Rotated."), native=None)
    agent = _agent(plain, store, actions="run")
    agent.run("Now rotate.", conversation_id="c")
    assert [_listed(request) for request in plain.requests] == [["search_tools", "rotate_key"]] * 2
    assert agent.conversation("c").session.why().startswith("append: the wire '_Model' cannot deliver natively")


def test_a_declaring_model_is_given_all_tools_and_a_helper_none() -> None:
    model = _Model(Reply("Done."), native=NativeDelivery(declares=True))
    _agent(model, MemoryStore()).run("Hello")
    (request,) = model.requests
    assert [shown.name for shown in request.deferred] == ["rotate_key", "send_mail"]
    assert request.helper("summary").deferred == ()
