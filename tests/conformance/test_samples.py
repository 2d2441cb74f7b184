"""Calls that have one file between them, and calls that must not."""

import dataclasses

import torch

from tests.conformance import checking
from tests.conformance.samples import Call


def call(*args, **kwargs):
    return Call(torch.add, args, kwargs)


def test_forms_differ_wherever_files_may():
    x = torch.arange(6.0).reshape(2, 3)
    same = call(x, 2).form
    assert call(x + 1, 2).form == same
    others = [
        call(x, 3),
        call(x, 2.0),
        call(x, other=2),
        call(x.int(), 2),
        call(x.T, 2),
        call(x[:1], 2),
        call(x[1:], 2),
        call((x, 2)),
        call(x, torch.tensor(2.0)),
    ]
    forms = [c.form for c in others]
    assert len({same, *forms}) == len(others) + 1


def test_an_object_that_is_not_looked_into_is_like_no_other():
    first = call(torch.ones(2), key=lambda: 1)
    assert first.form != dataclasses.replace(first).form


def test_a_kept_program_is_run_on_each_calls_own_numbers():
    made = {}
    verdicts = [
        checking.check("add", call(torch.full((2, 3), float(n)), 2), made=made) for n in range(3)
    ]
    assert [v.status for v in verdicts] == [checking.PASSED] * 3
    assert len(made) == 1
