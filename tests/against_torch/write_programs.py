"""Steps of random programs with more views and more writes in place, and ops that take or join several tensors."""

from __future__ import annotations

from typing import Any

from programs import Program, step  # the file lies beside this one

# ---- more views ------------------------------------------------------------------------------------------------------


@step("more views", 2)
def permuted(p: Program) -> Any:
    one = p.tensor()
    order = list(range(one.dim()))
    p.random.shuffle(order)
    return one.permute(order) if p.chance(0.5) else one.swapaxes(p.dim(one), p.dim(one))


@step("more views", 1)
def narrowed(p: Program) -> Any:
    one = p.tensor()
    if not one.numel() or not one.dim():
        return one.reshape(-1, 1)
    dim = p.dim(one)
    return one.narrow(dim, 0, p.random.randint(1, one.shape[dim]))


@step("more views", 1)
def windowed(p: Program) -> Any:
    one = p.tensor()
    return one.unfold(0, 1, 1) if one.dim() and one.dim() < 4 else one.flatten()


@step("more views", 1)
def turned(p: Program) -> Any:
    one = p.tensor()
    if one.dim() > 2:  # whether t() refuses before or after autograd does is no matter here
        return one[None] if one.dim() < 4 else one.ravel()
    return p.pick([lambda: one.T, lambda: one.t(), lambda: one.mT, lambda: one.ravel(), lambda: one[None]])()


@step("more views", 1)
def unflattened(p: Program) -> Any:
    one = p.tensor()
    return one.unflatten(-1, (-1, 1)) if 0 < one.dim() < 4 else one.movedim(0, -1) if one.dim() else one


@step("more views", 2)
def split_up(p: Program) -> Any:
    one = p.tensor()
    if not one.dim():
        return one
    size = one.shape[0]
    sizes = [1, size - 1] if size > 1 else [size]
    return p.pick([
        lambda: one.split(sizes), lambda: one.tensor_split(2), lambda: one.unsafe_chunk(2), lambda: one.hsplit(1),
        lambda: one.unsafe_split(1), lambda: one.unbind(p.dim(one)),
    ])()  # fmt: skip


@step("more views", 1)
def indexed(p: Program) -> Any:
    one = p.tensor()
    if not one.dim():
        return one[None, ...]
    return p.pick([lambda: one[0], lambda: one[-1:], lambda: one[..., 0], lambda: one[:, None], lambda: one[::2]])()


# ---- more writes -----------------------------------------------------------------------------------------------------


@step("more writes", 3)
def written_by_two(p: Program) -> Any:
    one = p.tensor()
    other = p.apart(one, one.shape)
    p.pick([
        lambda: one.add_(other, alpha=2), lambda: one.sub_(other, alpha=3), lambda: one.div_(2.0),
        lambda: one.addcmul_(one, other), lambda: one.lerp_(one * 2, 0.25), lambda: one.clamp_(-1.0, 1.0),
        lambda: one.clamp_(min=0.1), lambda: one.pow_(2), lambda: one.masked_fill_(one > 0, 0.5),
        lambda: one.fill_(one.sum()), lambda: one.copy_(one.clone()), lambda: one.cumsum_(-1),
    ])()  # fmt: skip


@step("more writes", 2)
def stored(p: Program) -> Any:
    one = p.tensor()
    if not one.dim():
        one[...] = p.apart(one, ())
        return
    p.pick([
        lambda: one.__setitem__(slice(None, 1), p.apart(one, one[:1].shape)),
        lambda: one.__setitem__(one > 0, 0.25),
        lambda: one.__setitem__((..., 0), p.apart(one, one[..., 0].shape)),
        lambda: one.__setitem__(p.torch.tensor([0]), p.apart(one, one[:1].shape)),
        lambda: one.index_fill_(0, p.torch.tensor([0]), 2.0),
        lambda: one.index_add_(0, p.torch.tensor([0]), one[:1] * 2),
        lambda: one.masked_fill_(one < 0, 0.0),
    ])()  # fmt: skip


@step("more writes", 1)
def augmented(p: Program) -> Any:
    one = p.tensor()
    before = one
    if p.chance(0.5):
        one += p.apart(one, one.shape)
    else:
        one *= 2.0
    p.events.append(one is before)


@step("more writes", 1)
def reshaped_in_place(p: Program) -> Any:
    one = p.tensor()
    p.pick([lambda: one.unsqueeze_(0), lambda: one.squeeze_(), lambda: one.t_(), lambda: one.transpose_(0, -1)])()


@step("more writes", 1)
def written_through_a_view(p: Program) -> Any:
    one = p.tensor()
    view = one.view(-1) if one.is_contiguous() else one.flatten()
    view[:1].mul_(p.pick([2.0, -1.0]))
    return view


@step("more writes", 1)
def written_out(p: Program) -> Any:
    one = p.tensor()
    p.torch.add(one, 1.0, out=p.torch.empty_like(one) if p.chance(0.5) else p.tensor())


# ---- several tensors -------------------------------------------------------------------------------------------------


@step("joined", 2)
def joined(p: Program) -> Any:
    one = p.tensor()
    parts = [one, one * 2.0]
    return p.pick([p.torch.stack, p.torch.cat])(parts, p.dim(one)) if one.dim() in (1, 2) else p.torch.stack(parts)


@step("joined", 1)
def chosen(p: Program) -> Any:
    one = p.tensor()
    return p.torch.where(one > 0, one, p.of_shape(one.shape))


@step("joined", 1)
def multiplied(p: Program) -> Any:
    one = p.tensor()
    return one @ one.transpose(-1, -2) if one.dim() >= 2 else one * one


@step("joined", 1)
def picked(p: Program) -> Any:
    one = p.tensor()
    if not one.dim():
        return one.expand(2)
    index = p.torch.tensor([0, one.shape[0] - 1])
    repeats = [2, *[1] * (one.dim() - 1)]
    return p.pick([lambda: one[index], lambda: one.index_select(0, index), lambda: one.repeat(repeats)])()


@step("joined", 1)
def reduced_more(p: Program) -> Any:
    one = p.tensor()
    name = p.pick(["amax", "prod", "var", "norm", "logsumexp", "cumsum", "softmax", "max", "sort"])
    if not one.dim() or one.numel() < 2:
        return one.exp()
    if name in ("prod", "cumsum", "softmax", "logsumexp", "amax", "max", "sort"):
        return getattr(one, name)(p.dim(one))
    return getattr(one, name)()


@step("joined", 1)
def converted(p: Program) -> Any:
    return p.tensor().to(p.torch.float32).to(p.torch.float64)
