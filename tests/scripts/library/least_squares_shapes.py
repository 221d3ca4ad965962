"""What torch.linalg.lstsq gives for batches, by driver: rank and singular values are those of the matrices alone."""

import torch

torch.manual_seed(0)
shapes = [
    ((4, 3), (4, 2)), ((1, 3, 3), (2, 3, 3)), ((3, 3), (2, 3, 2)), ((2, 4, 3), (4, 2)), ((2, 4, 3), (2, 4)),
    ((2, 1, 4, 3), (3, 4, 2)), ((1, 4, 3), (2, 4)), ((2, 1, 4, 3), (1, 3, 4, 2)),
]
for left, right in shapes:
    for driver in ("gelsy", "gelsd", "gels", "gelss"):
        try:
            found = torch.linalg.lstsq(torch.randn(left), torch.randn(right), driver=driver)
            print(left, right, driver, [tuple(part.shape) for part in found])
        except RuntimeError as error:
            print(left, right, driver, error)
