"""A pytest plugin for Chia's own tests: `import chiavdf` means lanework's module, and a run that never calls it fails."""

import lanework.compat.chiavdf as ours

ours.install()
import chiavdf  # noqa: E402

calls = 0


def _counted(function):
    def call(*args, **named):
        global calls
        calls += 1
        return function(*args, **named)

    return call


for _name in set(ours.__all__) - {"install"}:
    setattr(chiavdf, _name, _counted(getattr(chiavdf, _name)))


def pytest_sessionfinish():
    assert chiavdf.__file__ == ours.__file__, chiavdf.__file__
    assert calls, "no test called the module"
    print(f"\n{calls} calls of {chiavdf.__file__}")
