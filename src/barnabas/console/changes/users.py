"""Users that log in by SCRAM: `barnabas user create`, `user password` and `user delete`.

The password is typed under the preview, so no page ever has it.
"""

from __future__ import annotations

from barnabas.cli.done import Done
from barnabas.cli.user import deleted_user, mechanisms_of, new_mechanisms, with_password
from barnabas.client.admin import Admin
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.page import Field
from barnabas.security.sasl.scram_keys import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism
from barnabas.words.printable import printable

_USER = Field("name", "User", is_required=True)
_LABELS = tuple(each.label for each in ScramMechanism)
_ITERATIONS = Field("iterations", "Iterations", hint=f"{MIN_ITERATIONS}, or what there is; more are harder to guess")
_ASKS = (
    Field("password", "Password", kind="secret", is_required=True),
    Field("again", "The password again", kind="secret", is_required=True),
)
CREATION_FIELDS = (
    _USER,
    Field("mechanism", "Mechanism", "SCRAM-SHA-512", "choice", tuple((each, each) for each in _LABELS)),
    _ITERATIONS,
)
PASSWORD_FIELDS = (_USER, _ITERATIONS)
DELETION_FIELDS = (_USER,)


def creation(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan a new user, or another mechanism of one."""
    name = given.required("name", "the name of the user")
    mechanism = given.choice("mechanism", "the mechanism", _LABELS)
    wanted = new_mechanisms(admin, name, [mechanism], _iterations(given) or MIN_ITERATIONS)
    return _with_password(admin, f"Create user {printable(name)}", name, wanted, "created")


def password(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan another password for each mechanism of a user."""
    name = given.required("name", "the name of the user")
    iterations = _iterations(given)
    wanted = {mechanism: iterations or kept for mechanism, kept in mechanisms_of(admin, name).items()}
    return _with_password(admin, f"Change the password of user {printable(name)}", name, wanted, "changed")


def deletion(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan the end of a user."""
    name = given.required("name", "the name of the user")
    return Planned(
        f"Delete user {printable(name)}",
        f"user {name}",
        deleted_user(admin, name, dry_run=True),
        lambda admin, _: deleted_user(admin, name, dry_run=False),
        destroys=name,
        after=("users", {}),
    )


def _iterations(given: Given) -> int | None:
    found = given.number("iterations", "the number of iterations", least=MIN_ITERATIONS)
    if found is not None and found > MAX_ITERATIONS:
        raise BadForm(f"the number of iterations must be at most {MAX_ITERATIONS}, not {found}")
    return found


def _with_password(admin: Admin, does: str, name: str, wanted: dict[str, int], done: str) -> Planned:
    def carry_out(admin: Admin, given: Given) -> Done:
        secret = given.required("password", "the password")
        if secret != given.text("again"):
            raise BadForm("the two passwords are not the same")
        return with_password(admin, name, wanted, done, secret)

    return Planned(
        does,
        f"user {name}",
        with_password(admin, name, wanted, done, None),
        carry_out,
        asks=_ASKS,
        after=("users", {}),
    )
