"""torch.__version__ compares as versions do; the old storage names; pruning methods by their own classmethods."""

import inspect
import warnings

import torch
from torch.nn.utils import prune
from torch.torch_version import TorchVersion

warnings.simplefilter("ignore")


def tried(what):
    try:
        print(what())
    except Exception as error:
        print(type(error).__name__, error)


version = torch.__version__
print(type(version), isinstance(version, str), version.split("+")[0], hash(version) == hash(str(version)))
print(version >= (1, 8), version > "1.10", version < "2.9", version >= (2, 13, 0), version < (3,), version == "2.13.0")
print(version == "2.13.0+CPU", version == "2.13.0.0+cpu", version != "2.13.0", version < "1!1.0", version == None)  # noqa: E711
print(version < "2.13rc1", version > "2.13.dev1", version < "2.13.0.post1", version > "parrot", version == "parrot")
tried(lambda: version > 2)
names = "1.10 1.9 1.10rc2 1.10a1 1.10b 1.10.dev3 1.10.post2 1.10-1 v1.10.0.1 1.10+cpu 1.10+cu118 1.10+5 1.10+cpu.2 1!0.1"
print(sorted(map(TorchVersion, (*names.split(), "1.10c1", "1.10-preview-3", "1.10.alpha", "1.10rev4", "1.10a1.dev2"))))
print(torch.torch_version.__all__, torch.torch_version.__version__ == version, torch.version.__version__)

print(torch.Storage, torch.Storage is torch.FloatStorage, torch.Storage(3).size(), torch.Storage())
print(torch.Storage([1, 2, 3]), isinstance(torch.ones(2).storage(), torch.Storage))
print(isinstance(torch.ones(2).storage(), torch.IntStorage), isinstance(torch.ones(2), torch.FloatStorage))
print(isinstance(torch.ones(2).untyped_storage(), torch.FloatStorage), issubclass(torch.IntStorage, torch.TypedStorage))

kinds = (prune.Identity, prune.RandomUnstructured, prune.L1Unstructured, prune.RandomStructured, prune.LnStructured,
         prune.CustomFromMask)  # fmt: skip
for kind in kinds:
    parameters = inspect.signature(kind.apply).parameters.values()
    print(kind.__name__, [(p.name, p.default is p.empty or p.default) for p in parameters])
torch.manual_seed(0)
layer = torch.nn.Linear(4, 3)
for change in (
    lambda: prune.L1Unstructured.apply(layer, "weight", 2), lambda: prune.LnStructured.apply(layer, "weight", 0.3, 2, 0),
    lambda: prune.RandomStructured.apply(layer, "weight", 1, dim=1), lambda: prune.Identity.apply(layer, "bias"),
    lambda: prune.CustomFromMask.apply(layer, "bias", torch.tensor([1.0, 0.0, 1.0])),
    lambda: prune.RandomUnstructured.apply(layer, "bias", 1), lambda: prune.RandomUnstructured.apply(layer, "bias", 3, 4),
    lambda: prune.LnStructured.apply(layer, "weight", 1, 2), lambda: prune.Identity.apply(layer, "none"),
    lambda: prune.L1Unstructured.apply(layer, "weight", 1, torch.arange(12.0).view(3, 4)),
):  # fmt: skip
    tried(lambda: type(change()))
    print(layer.weight, layer.bias)

kinds = {name: getattr(torch.nn, name) for name in sorted(dir(torch.nn))}
for name, kind in kinds.items():
    if inspect.isclass(kind) and hasattr(kind, "__constants__") and "Quantizable" not in name:
        print(name, kind.__constants__)


class Scaled(torch.nn.Linear):
    __constants__ = [*torch.nn.Linear.__constants__, "scale"]


print(Scaled.__constants__, hasattr(torch.nn.Module, "__constants__"))
