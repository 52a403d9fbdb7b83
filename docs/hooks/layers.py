"""Shows `toolsearch.layers.approval` as a program sees it: what makes the layer, not the module of that name."""

from __future__ import annotations

from typing import Any

import griffe


class FactoriesBeforeModules(griffe.Extension):
    """Gives a name that a package exports to the function of that name where a module stands in its place."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Looks at the packages right below this one."""
        for package in pkg.modules.values():
            if not package.is_alias and package.is_init_module:
                _prefer_functions(package)


def _prefer_functions(package: griffe.Module) -> None:
    exported = {str(name) for name in package.exports or ()}
    made = {
        name: module.members[name]
        for name, module in package.modules.items()
        if name in exported and not module.is_alias and name in module.members
    }
    for name, member in package.members.items():
        if name in exported and member.is_alias:
            member.resolve_target()  # before the module it leads through is out of reach
    for name, function in made.items():
        package.members[name] = griffe.Alias(name, function, parent=package)
