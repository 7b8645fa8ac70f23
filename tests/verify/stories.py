"""Histories in a few words.

    p0 ok txn s0:1@0 s1:2@0 r0:7@3,8@4 o:g:0:5      process 0 committed a transaction: sends, a poll, offsets of group g
    p1 ok assign 0 1                                 and assigned keys 0 and 1
    p2 ok poll r0:1@0 ~0                             a poll during which key 0 was rebalanced
    final r0:1@0,2@1                                 a final read of key 0
    final 0                                          a final read that found nothing in key 0

`s0:1@5` sends the value 1 to key 0 and was told offset 5, `s0:1` was told nothing.
Each line is invoked and completed before the next begins.
"""

from __future__ import annotations

from barnabas.verify.history import History, MicroOp, Offsets, Op, Outcome, Poll, Send


def history(*lines: str) -> History:
    ops: list[Op] = []
    for line in lines:
        words = line.split()
        final = words[0] == "final"
        process, outcome, f = (99, Outcome.OK, "poll") if final else (int(words[0][1:]), Outcome(words[1]), words[2])
        value: list[MicroOp] = []
        keys: list[int] = []
        rebalanced: set[int] = set()
        for word in words[1 if final else 3 :]:
            kind, rest = word[0], word[1:]
            if kind == "s":
                key, _, told = rest.partition(":")
                number, _, offset = told.partition("@")
                value.append(Send(int(key), int(number), int(offset) if offset else None))
            elif kind == "r":
                key, _, listed = rest.partition(":")
                pairs = [each.split("@") for each in listed.split(",")]
                value.append(Poll({int(key): [(int(offset), int(number)) for number, offset in pairs]}))
                if final:
                    keys.append(int(key))
            elif kind == "o":
                _, group, key, position = word.split(":")
                value.append(Offsets(group, {int(key): int(position)}))
            elif kind == "~":
                rebalanced.add(int(rest))
            else:
                keys.append(int(word))
        for each in (Outcome.INVOKE, outcome):
            ops.append(
                Op(
                    len(ops),
                    len(ops) * 1000,
                    process,
                    each,
                    f,
                    tuple(value),
                    tuple(keys),
                    frozenset(rebalanced),
                    final=final,
                )
            )
    return History(tuple(ops))
