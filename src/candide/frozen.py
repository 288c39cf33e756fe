"""Frozen dataclasses that cost little to declare: their methods are written once here, not compiled for each class.

``dataclass(frozen=True)`` of the standard library compiles six functions for every class, about half a millisecond;
forty classes of them cost more than all else in loading a small model. What is declared here is a dataclass to
``fields``, ``replace``, pickle, type checkers and ``inspect.signature``, and may be subclassed by an ordinary one.

>>> @dataclass(frozen=True)
... class Point:
...     x: float
...     y: float = 0.0
>>> Point(1.0), Point(1.0) == Point(1.0, y=0.0), hash(Point(2.0)) == hash(Point(2.0))
(Point(x=1.0, y=0.0), True, True)
>>> Point(1.0).x = 2.0
Traceback (most recent call last):
    ...
dataclasses.FrozenInstanceError: cannot assign to field 'x'
"""

import dataclasses
from typing import TYPE_CHECKING, Any

_MISSING = dataclasses.MISSING


def _init(self: Any, /, *args: Any, **given: Any) -> None:
    names, defaults, made = self.__layout__
    state = dict(zip(names, args, strict=False))
    if len(args) > len(names) or (given and not state.keys().isdisjoint(given)) or not given.keys() <= defaults.keys():
        raise TypeError(_complaint(type(self), args, given))
    state |= given
    if len(state) < len(names):
        for name in names:
            if name not in state:
                default = defaults[name]
                if default is _MISSING:
                    raise TypeError(_complaint(type(self), args, given))
                state[name] = default() if isinstance(default, _Factory) else default
    for name, default in made.items():
        state[name] = default() if isinstance(default, _Factory) else default
    self.__dict__.update(state)
    if (finish := getattr(self, "__post_init__", None)) is not None:
        finish()


class _Factory:
    """A default that is made anew for every value."""

    def __init__(self, make: Any):
        self.make = make

    def __call__(self) -> Any:
        return self.make()


def _default(f: dataclasses.Field) -> Any:
    return f.default if f.default_factory is _MISSING else _Factory(f.default_factory)


def _complaint(cls: type, args: tuple, given: dict[str, Any]) -> str:
    """What Python says of a call that does not fit."""
    import inspect

    try:
        inspect.signature(cls).bind(*args, **given)
    except TypeError as error:
        return f"{cls.__name__}.__init__(): {error}"
    return f"{cls.__name__}.__init__(): these arguments do not fit"


def _set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: Any) -> str:
    shown = (f.name for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _eq(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _compared(self) == _compared(other)


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _compared(self: Any) -> tuple:
    return tuple(getattr(self, f.name) for f in dataclasses.fields(self) if f.compare)


class _Signature:
    """``inspect.signature`` of the class, made when it is asked for."""

    def __get__(self, instance: Any, cls: type) -> Any:
        import inspect

        if cls.__init__ is not _init or instance is not None:  # type: ignore[misc]
            return None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = []
        for f in dataclasses.fields(cls):
            default = inspect.Parameter.empty if f.default is _MISSING else f.default
            default = default if f.default_factory is _MISSING else f.default_factory
            if f.init:
                parameters.append(inspect.Parameter(f.name, kind, default=default, annotation=f.type))
        return inspect.Signature(parameters, return_annotation=None)


_METHODS = {"__init__": _init, "__setattr__": _set, "__delattr__": _delete, "__repr__": _repr}


def _declared(cls: Any, eq: bool) -> Any:
    kin = [base.__dataclass_params__ for base in cls.__mro__[1:] if "__dataclass_params__" in vars(base)]
    before = [(params, params.frozen) for params in kin]
    documented = cls.__doc__
    cls.__doc__ = documented or cls.__name__  # where there is none the library writes one, and that takes milliseconds
    for params in kin:  # the library refuses a class that is not frozen under one that is; this one will be
        params.frozen = False
    try:
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    finally:
        for params, frozen in before:
            params.frozen = frozen
    cls.__doc__ = documented
    cls.__dataclass_params__.frozen = True
    fields = dataclasses.fields(cls)
    defaults = {f.name: _default(f) for f in fields if f.init}
    made = {f.name: _default(f) for f in fields if not f.init and _default(f) is not _MISSING}
    cls.__layout__ = tuple(defaults), defaults, made
    cls.__signature__ = _Signature()
    methods = {**_METHODS, "__eq__": _eq, "__hash__": _hash} if eq else _METHODS
    for name, method in methods.items():
        if name not in vars(cls) or (name == "__hash__" and vars(cls)[name] is None):
            setattr(cls, name, method)
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, eq: bool = True) -> Any:
        """The library's decorator for frozen classes, compared and hashed by their fields unless ``eq=False``."""
        if not frozen:
            raise TypeError("these dataclasses are frozen; use the library's for others")
        return lambda cls: _declared(cls, eq)
