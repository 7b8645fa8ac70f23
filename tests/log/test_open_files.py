"""The second-chance queue of open files."""

from __future__ import annotations

from barnabas.log.open_files import OpenFiles


class Handle:
    def __init__(self) -> None:
        self.recently_used = True
        self.is_open = True

    def close_file(self) -> None:
        self.is_open = False


def test_closes_the_one_not_used_for_longest() -> None:
    files = OpenFiles(3)
    handles = [Handle() for _ in range(3)]
    for handle in handles:
        files.opened(handle)
    assert all(handle.is_open for handle in handles)
    handles[0].recently_used = handles[2].recently_used = False
    newest = Handle()
    files.opened(newest)
    assert [handle.is_open for handle in handles] == [False, True, True]
    assert newest.is_open
    assert repr(files) == "<OpenFiles 3/3>"


def test_never_closes_the_one_just_opened() -> None:
    files = OpenFiles(2)
    for number in range(10):
        handle = Handle()
        handle.recently_used = False
        files.opened(handle)
        assert handle.is_open
        assert len(files) == min(number + 1, 2)


def test_spares_a_used_file_once() -> None:
    files = OpenFiles(2)
    used, idle, newest, last = (Handle() for _ in range(4))
    idle.recently_used = False
    files.opened(used)
    files.opened(idle)
    files.opened(newest)
    assert (used.is_open, idle.is_open, used.recently_used) == (True, False, False)
    files.opened(last)
    assert (used.is_open, newest.is_open, last.is_open) == (False, True, True)


def test_forgets_what_was_closed_elsewhere() -> None:
    files = OpenFiles(2)
    first = Handle()
    files.opened(first)
    files.closed(first)
    files.closed(first)
    assert len(files) == 0
