"""The stubs name what the modules have, with the same parameters."""

import ast
import inspect
from pathlib import Path

import pytest

import lanework

NAMES = ["magma", "mayo", "vdf"]


def _stub(name):
    tree = ast.parse((Path(lanework.__file__).parent / f"{name}.pyi").read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {
        node.name: {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    return functions, classes


def _parameters(node):
    """Names of a stub's parameters, without self and cls, those with defaults marked, keywords behind a star."""
    arguments = node.args
    positional = [a.arg for a in arguments.posonlyargs + arguments.args]
    marks = [""] * (len(positional) - len(arguments.defaults)) + ["="] * len(arguments.defaults)
    shown = [name + mark for name, mark in zip(positional, marks) if name not in ("self", "cls")]
    if arguments.kwonlyargs:
        shown.append("*")
        shown += [a.arg + ("=" if d else "") for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return shown


def _signature(thing):
    shown, starred = [], False
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            shown.append("*")
        shown.append(parameter.name + ("" if parameter.default is parameter.empty else "="))
    return shown


@pytest.mark.parametrize("name", NAMES)
def test_the_stubs_are_the_module(name):
    module = getattr(lanework, name)
    functions, classes = _stub(name)
    assert sorted([*functions, *classes]) == sorted(module.__all__)
    for function, node in functions.items():
        assert _signature(getattr(module, function)) == _parameters(node), function
    for name, members in classes.items():
        made = getattr(module, name)
        public = {member for member in vars(made) if not member.startswith("_")}
        assert public - {"alg_name", "round"} == {m for m in members if not m.startswith("_")} - {"round"}, name
        for member, node in members.items():
            if any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list):
                assert inspect.isdatadescriptor(getattr(made, member)), member
            elif member in ("__new__", "__init__"):
                assert _signature(made) == _parameters(node), f"{name}.{member}"
            elif not member.startswith("_"):
                assert _signature(getattr(made, member)) == _parameters(node), f"{name}.{member}"


def test_everything_public_is_documented():
    for module in (lanework, *(getattr(lanework, name) for name in NAMES)):
        assert module.__doc__
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, str) or inspect.ismodule(thing):
                continue
            assert inspect.getdoc(thing), name


def test_the_package_is_typed():
    assert (Path(lanework.__file__).parent / "py.typed").exists()


def test_no_thread_runs_while_the_gil_is_held(overlapped):
    # The planted fault of the tests named "leaves the GIL to others".
    assert not overlapped(lambda n: sum(range(n)), 10_000)
