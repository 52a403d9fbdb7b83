"""A value checked against a compiled schema, and coerced on the way: one walk through both.

What a condition only asks about (`not`, `if`, `contains`, `propertyNames`) is compared as it is; only what is kept is
coerced. Where a condition rests on something that cannot be read, nobody knows its outcome, and it refuses nothing. A
schema may refer to itself, so what one validation may cost is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice

from toolsearch.schemas.budget import Budget, EnoughProblems
from toolsearch.schemas.compiled import CompiledSchema, Part
from toolsearch.schemas.constraints import count_problems, number_problems
from toolsearch.schemas.json_values import brief, coerced, comparable, size, type_of

__all__ = ["Validator"]

_DEEPEST = 64  # levels of nesting; deeper values and reference loops are refused, not followed
_PROBLEMS = 50  # problems after which one validation stops
_PATH = 200  # characters of a path in a sentence
_HEAVY = 20_000  # weight times characters of a match after which the clock is looked at


class Validator:
    """One walk, or one trial of a branch within it; `problems` has a sentence for everything that does not fit."""

    def __init__(self, schema: CompiledSchema, budget: Budget, depth: int = 0, *, exact: bool = False) -> None:
        self.schema = schema
        self.budget = budget
        self.depth = depth
        self.exact = exact  # compare only: coerce nothing, stop at the first problem
        self.is_unsure = False  # whether something that was asked cannot be told
        self.problems: list[str] = []

    def value(self, schema: object, value: object, path: str) -> object:
        """One value checked and coerced; problems are collected with their path (`ids[2]`)."""
        for part in self.schema.layers(schema):
            self.budget.work -= 1
            if self.budget.work < self.budget.check_below:
                self.budget.check()
            if part.never:
                self.refuse(path, "is not allowed")
            if part.unsure:
                self.is_unsure = True
            self.depth += 1
            try:
                if self.depth > _DEEPEST:
                    self.refuse(path, f"must not be nested more than {_DEEPEST} levels deep")
                    return value
                value = self._checked(part, value, path)
            finally:
                self.depth -= 1
        return value

    def _checked(self, part: Part, value: object, path: str) -> object:
        wanted = part.types
        if not self.exact:
            value = self._coerced(part, value)
        if wanted and not _is_of(value, wanted, self.exact):
            self.refuse_value(path, f"must be {_any_of_types(sorted(wanted))}, not {type_of(value)}", value)
            return value
        if part.enum is not None or part.has_const:
            self._constants(part, value, path)
        if isinstance(value, dict):
            value = self._object(part, value, path)
        elif isinstance(value, list):
            value = self._array(part, value, path)
        elif isinstance(value, str):
            self._text(part, value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if isinstance(value, int) and value.bit_length() > 1_000:
                self.budget.spend(value.bit_length() // 50)
            self._refuse_all(path, number_problems(part.bounds, part.step, value))
        return self._combined(part, value, path)

    def _coerced(self, part: Part, value: object) -> object:
        """The value in the type and the spelling that the schema wants, if nothing is lost."""
        new = coerced(value, part.types, self.budget.read) if part.types else value
        if (enum := part.enum) is not None and isinstance(new, str):
            new = enum.spelled(new)
        if new is not value:
            self.budget.has_coerced = True
        return new

    # -- problems ------------------------------------------------------------------------------------------------

    def refuse(self, path: str, what: str) -> None:
        self.problem(f"{_cut(path)!r} {what}" if path else f"{self.budget.whole} {what}")

    def refuse_value(self, path: str, what: str, value: object) -> None:
        """As `refuse`; the sentence ends with the value. A trial whose sentence nobody reads does not write it."""
        self.refuse(path, what if self.exact else f"{what} {brief(value)}")

    def _refuse_all(self, path: str, problems: Iterable[str]) -> None:
        for what in problems:
            self.refuse(path, what)

    def problem(self, sentence: str) -> None:
        self.problems.append(sentence)
        if self.exact or len(self.problems) >= _PROBLEMS:
            raise EnoughProblems

    def _constants(self, part: Part, value: object, path: str) -> None:
        is_container = isinstance(value, Mapping | list)
        if (enum := part.enum) is not None:
            known = enum.has_containers if is_container else True
            if known:
                known = self._comparable(value) in enum.values
            if not known and self.exact:
                raise EnoughProblems
            if not known:
                self.budget.spend(len(enum.cases) // 100)
                hint = self._meant(value, enum.candidates(value))
                self.refuse(path, f"must be one of {enum.shown}, not {brief(value)}{hint}")
        if part.has_const:
            same_kind = is_container == isinstance(part.const, Mapping | list)
            if not same_kind or self._comparable(value) != comparable(part.const):
                self.refuse(path, "must be a constant" if self.exact else f"must be {brief(part.const, _PATH)}")

    def _place(self, path: str, key: str) -> str:
        """The path of a field, as the model knows it: an argument may have been shown under another name."""
        return f"{path}.{key}" if path else self.budget.shown_names.get(key, key)

    def _comparable(self, value: object) -> object:
        if isinstance(value, Mapping | list):
            self.budget.spend(size(value) // 4)
        return comparable(value)

    def _meant(self, written: object, known: Iterable[str], at: str = "") -> str:
        """What was probably meant, as the end of a sentence; "" when nothing is close or enough was suggested."""
        if not isinstance(written, str) or self.exact or self.budget.hints <= 0:
            return ""
        self.budget.hints -= 1
        spelled = {k.casefold(): k for k in islice(known, 1000) if len(k) <= 64}
        near = get_close_matches(written[:64].casefold(), spelled, 1)
        return f"; did you mean {_cut(self._place(at, spelled[near[0]]))!r}?" if near else ""

    # -- texts, objects, arrays ----------------------------------------------------------------------------------

    def _text(self, part: Part, value: str, path: str) -> None:
        self._refuse_all(path, count_problems(part.length_bounds, len(value), "characters"))
        if (pattern := part.pattern) is not None:
            fits = pattern.matches(value)
            if pattern.weight * len(value) > _HEAVY:
                self.budget.check()
            if fits is None:
                self.is_unsure = True
            elif not fits:
                self.refuse(path, f"must match the pattern {_cut(pattern.text)!r}")

    def _object(self, part: Part, value: dict[str, object], path: str) -> dict[str, object]:
        if not self.exact and None in value.values():
            value = self._without_nulls(part, value)
        for key in part.required:
            if key not in value:
                self.problem(f"the required {self.budget.part} {_cut(self._place(path, key))!r} is missing")
        checked = self._properties(part, value, path)
        self._refuse_all(path, count_problems(part.property_bounds, len(value), "fields"))
        if part.names is not None:
            for key in value:
                if self._holds(part.names, key) is False:
                    self.refuse(self._place(path, key), "has a name that is not allowed")
        return self._dependents(part, value, checked, path)

    def _without_nulls(self, part: Part, value: dict[str, object]) -> dict[str, object]:
        """A model that sends null for what it does not want to say means "left out"."""
        properties, admits_null = part.properties, self.schema.admits_null
        kept = {
            key: item
            for key, item in value.items()
            if item is not None or key in part.required or key not in properties or admits_null(properties[key])
        }
        self.budget.has_coerced |= len(kept) < len(value)
        return kept

    def _properties(self, part: Part, value: dict[str, object], path: str) -> dict[str, object]:
        """Each field by the schemas that apply to its name, or else by `additionalProperties`."""
        properties, rest = part.properties, part.additional
        checked: dict[str, object] = {}
        for key, item in value.items():
            at = "" if self.exact else self._place(path, key)
            fitting = [properties[key]] if key in properties else []
            may_fit = bool(part.patterns) and self._add_fitting(part, key, fitting)
            checked[key] = item
            if not fitting and may_fit:  # by a pattern that nobody here can read
                self.is_unsure = self.is_unsure or rest is not True
                continue
            if not fitting and rest is False:
                self.problem(f"there is no {self.budget.part} {_cut(at)!r}{self._meant(key, properties, path)}")
                continue
            for one in fitting or [rest]:
                if one is not True:
                    checked[key] = self.value(one, checked[key], at)
        return checked

    def _add_fitting(self, part: Part, key: str, fitting: list[object]) -> bool:
        """Adds the schemas whose pattern fits a name; returns whether others may fit, which cannot be told."""
        may_fit = False
        for pattern, schema in part.patterns:
            fits = pattern.matches(key)
            if fits:
                fitting.append(schema)
            elif fits is None:
                may_fit = True
            if pattern.weight * len(key) > _HEAVY:
                self.budget.check()
        self.budget.spend(len(part.patterns) // 10)
        self.is_unsure = self.is_unsure or may_fit
        return may_fit

    def _dependents(
        self, part: Part, value: dict[str, object], checked: dict[str, object], path: str
    ) -> dict[str, object]:
        """What must be there, or hold, because some field is there."""
        if part.dependent_required:
            for key in value:
                others = part.dependent_required.get(key)
                for other in others if isinstance(others, list) else ():
                    if other not in value:
                        wanted, why = _cut(self._place(path, str(other))), _cut(self._place(path, key))
                        self.problem(f"{wanted!r} is required together with {why!r}")
        if part.dependent:
            for key in [key for key in value if key in part.dependent]:
                again = self.value(part.dependent[key], checked, path)
                checked = again if isinstance(again, dict) else checked
        return checked

    def _array(self, part: Part, value: list[object], path: str) -> list[object]:
        checked = value
        if part.first or part.items is not True:
            first, rest = part.first, part.items
            checked = [
                self.value(first[i] if i < len(first) else rest, item, "" if self.exact else f"{path}[{i}]")
                for i, item in enumerate(value)
            ]
        self._refuse_all(path, count_problems(part.item_bounds, len(value), "items"))
        if part.unique:
            self.budget.spend(size(checked) // 4)
            if len({comparable(item) for item in checked}) < len(checked):
                self.refuse(path, "must not hold the same item twice")
        if part.contains is not None:
            self._contains(part, checked, path)
        return checked

    def _contains(self, part: Part, checked: list[object], path: str) -> None:
        outcomes = [self._holds(part.contains, item) for item in checked]
        surely, perhaps = outcomes.count(True), outcomes.count(None)
        low, high = part.contains_bounds
        if surely + perhaps < (1 if low is None else low):
            self.refuse(path, "lacks an item it must contain")
        elif high is not None and surely > high:
            self.refuse(path, f"must hold at most {brief(high)} items of one kind, not {surely}")
        self.is_unsure = self.is_unsure or perhaps > 0

    # -- combinators ---------------------------------------------------------------------------------------------

    def _combined(self, part: Part, value: object, path: str) -> object:
        for branch in part.all_of:
            value = self.value(branch, value, path)
        for branches in part.any_of:
            if branches:
                value = self._any_of(branches, value, path)
        if part.refused is not None:
            holds = self._holds(part.refused, value)
            if holds:
                self.refuse(path, "has a form that is not allowed")
            self.is_unsure = self.is_unsure or holds is None
        if part.condition is not None and (part.then is not None or part.otherwise is not None):
            holds = self._holds(part.condition, value)
            branch = None if holds is None else part.then if holds else part.otherwise
            self.is_unsure = self.is_unsure or holds is None
            value = self.value(branch, value, path) if branch is not None else value
        return value

    def _any_of(self, branches: list[object], value: object, path: str) -> object:
        """A branch that takes the value as it is comes before one that would change it."""
        if self.exact or len(branches) > 1:
            outcomes = set[bool | None]()
            for branch in branches:
                outcomes.add(outcome := self._holds(branch, value))
                if outcome:
                    return value
            if None in outcomes:
                self.is_unsure = True
                return value
            if self.exact:
                raise EnoughProblems
        failures = []
        for branch in branches:
            trial = Validator(self.schema, self.budget, self.depth)
            try:
                checked = trial.value(branch, value, path)
            except EnoughProblems:
                checked = value
            if not trial.problems:
                return checked
            failures.append(trial.problems)
        closest = min(failures, key=len)
        if len(branches) > 1:
            closest = [f"none of {len(branches)} forms fits: {'; '.join(closest[:3])}"]
        for sentence in closest:
            self.problem(sentence)
        return value

    def _holds(self, schema: object, value: object) -> bool | None:
        """Whether the value is valid as it is; None where that cannot be told."""
        trial = Validator(self.schema, self.budget, self.depth, exact=True)
        try:
            trial.value(schema, value, "")
        except EnoughProblems:
            return False
        return None if trial.is_unsure else True


def _is_of(value: object, wanted: frozenset[str], exact: bool) -> bool:
    kind = type_of(value)
    if kind in wanted or (kind == "integer" and "number" in wanted):
        return True
    return exact and isinstance(value, float) and "integer" in wanted and value.is_integer()


def _cut(path: str) -> str:
    """A path, or a pattern, within bounds: it may be foreign, or the model's."""
    return path if len(path) <= _PATH else f"{path[: _PATH // 2]}…{path[-_PATH // 2 :]}"


def _any_of_types(names: list[str]) -> str:
    return " or ".join(f"an {n}" if n[0] in "aio" else n if n == "null" else f"a {n}" for n in names)
