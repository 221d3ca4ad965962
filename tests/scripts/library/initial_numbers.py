"""Every function of torch.nn.init, from one seed, on several shapes."""

import torch
import torch.nn.init as init


def show(name, *args, **options):
    for shape in ((5, 4), (3, 2, 3, 3), (20, 17), (4, 4, 3)):
        torch.manual_seed(0)
        x = torch.empty(shape)
        try:
            getattr(init, name)(x, *args, **options)
            values = [f"{v:.5f}" for v in x.flatten()[:5].tolist()]
            print(name, args, options, shape, values, f"{x.sum():.3f}", torch.rand(1).item())
        except Exception as error:
            print(name, args, options, shape, type(error).__name__, str(error)[:100])


show("trunc_normal_")
show("trunc_normal_", std=0.02)
show("trunc_normal_", 0.0, 1.0, -2.0, 0.5)
show("trunc_normal_", 0.0, 1.0, 2.0, 3.0)
show("trunc_normal_", 5.0, 1.0, -2.0, 2.0)
show("trunc_normal_", 0.0, 1.0, -0.1, 0.1)
show("uniform_", -1, 2)
show("normal_", 1.0, 0.3)
for name in ("ones_", "zeros_", "eye_", "dirac_", "xavier_uniform_", "orthogonal_"):
    show(name)
show("constant_", 2.0)
show("dirac_", 2)
show("xavier_normal_", gain=2.0)
show("kaiming_uniform_", a=0.2, nonlinearity="leaky_relu")
show("kaiming_uniform_", mode="fan_out")
show("kaiming_normal_", nonlinearity="relu")
show("kaiming_normal_", mode="x")
show("orthogonal_", gain=0.5)
show("sparse_", 0.3)
show("sparse_", 0.9, 0.1)
for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "foo"):
    try:
        print(name, init.calculate_gain(name))
    except ValueError as error:
        print(name, error)
