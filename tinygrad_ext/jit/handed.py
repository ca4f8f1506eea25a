"""Lists and dicts among the arguments of a program: whether it changed them while it was written down."""


class Handed:
    """What the containers among some values hold, told by `changed` and put back by it."""

    def __init__(self, values):
        self._held = []
        self._note(values)

    def _note(self, value):
        if type(value) in (list, dict):
            self._held.append((value, value.copy()))
        if isinstance(value, (list, tuple, dict)):
            for part in value.values() if isinstance(value, dict) else value:
                self._note(part)

    def changed(self):
        """Whether one holds something else now. They hold again what they held then."""
        found = [(value, before) for value, before in self._held if not _is_same(value, before)]
        for value, before in found:
            value.clear()
            (value.update if type(value) is dict else value.extend)(before)
        return bool(found)


def _is_same(value, before):
    if type(value) is dict:
        return list(value) == list(before) and all(value[key] is part for key, part in before.items())
    return len(value) == len(before) and all(a is b for a, b in zip(value, before))
