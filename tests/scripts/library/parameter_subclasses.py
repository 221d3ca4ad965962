"""Parameters of classes of their own: made, copied, printed, trained."""

import torch, copy, pickle, inspect


class P(torch.nn.Parameter):
    pass


class Q(torch.nn.Parameter):
    def __new__(cls, data=None, requires_grad=True, extra=None):
        s = super().__new__(cls, data, requires_grad)
        s.extra = extra
        return s


def t(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, str(e)[:200])


q = Q(torch.ones(2), extra=[1])
t(lambda: (q, q.extra, type(copy.deepcopy(q)), copy.deepcopy(q).extra, q.requires_grad))
t(lambda: (copy.copy(q), type(copy.copy(q)), copy.copy(q).extra is q.extra, copy.copy(q).data_ptr() == q.data_ptr()))
t(
    lambda: (
        P(torch.ones(2)),
        type(copy.deepcopy(P(torch.ones(2)))),
        type(P(torch.ones(2)).data),
        type(P(torch.ones(2)) + 1),
    )
)
p = torch.nn.Parameter(torch.ones(2))
p.tag = [3]
t(lambda: (copy.copy(p), copy.copy(p).tag is p.tag, hasattr(copy.deepcopy(p), "tag")))
m = torch.nn.Linear(2, 2)
m.weight = Q(torch.ones(2, 2), True, extra=7)
n = copy.deepcopy(m)
t(lambda: (type(n.weight), n.weight.extra, n.weight, list(n.state_dict())))
t(lambda: Q(torch.ones(2), False, extra=3))
t(lambda: torch.nn.Parameter(torch.ones(2), foo=1))
t(lambda: torch.nn.Buffer(torch.ones(2), foo=1))
t(lambda: [x.name for x in inspect.signature(torch.nn.Parameter).parameters.values()])
t(lambda: torch.nn.Parameter())
o = torch.optim.SGD([q], lr=0.1)
(q * 2).sum().backward()
o.step()
t(lambda: (q, type(q)))
