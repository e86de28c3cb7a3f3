"""The stub of the extension module says what is in it, no more and no less."""
import ast
import inspect
import pathlib

from tenon import _tenon

STUB = ast.parse((pathlib.Path(inspect.getfile(__import__("tenon"))).parent / "_tenon.pyi").read_text())


def names(body):
    found = {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return found | {node.target.id: node for node in body if isinstance(node, ast.AnnAssign)}


def test_functions_and_classes():
    there = {name for name in vars(_tenon) if not name.startswith("__")}
    assert set(names(STUB.body)) == there


def test_members_of_classes():
    for name, node in names(STUB.body).items():
        if not isinstance(node, ast.ClassDef):
            continue
        there = {member for member in vars(getattr(_tenon, name)) if not member.startswith("__")}
        written = {member for member in names(node.body) if not member.startswith("__")}
        assert there == written, name


def test_the_public_surface_is_annotated_and_documented():
    import tenon

    for name in tenon.__all__:
        thing = getattr(tenon, name)
        assert inspect.getdoc(thing), name
        if inspect.isfunction(thing):
            signature = inspect.signature(thing)
            assert signature.return_annotation is not signature.empty, name
            assert all(p.annotation is not p.empty for p in signature.parameters.values()), name
