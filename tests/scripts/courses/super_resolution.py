"""ESPCN: sub-pixel convolution with orthogonal starts, PSNR, a bicubic baseline."""

from math import log10

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.init as init

torch.manual_seed(123)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
        self.conv4 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        return self.pixel_shuffle(self.conv4(x))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv4.weight)


rows, columns = torch.meshgrid(torch.linspace(0, 3, 24), torch.linspace(0, 3, 24), indexing="ij")
high = torch.stack([torch.sin(rows * k) * torch.cos(columns * (k + 1)) for k in range(1, 7)]).unsqueeze(1)
low = F.interpolate(high, scale_factor=0.5, mode="bilinear", align_corners=False, antialias=True)
model = Net(2)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for epoch in range(1, 7):
    epoch_loss = 0
    for input, target in zip(low[:4].split(2), high[:4].split(2)):
        optimizer.zero_grad()
        loss = criterion(model(input), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        psnr = 10 * log10(1 / criterion(model(low[4:]), high[4:]).item())
    print(f"===> Epoch {epoch} Complete: Avg. Loss: {epoch_loss / 2:.4f}, Avg. PSNR: {psnr:.4f} dB")
for mode in ("nearest", "bilinear", "bicubic"):
    extra = {} if mode == "nearest" else {"align_corners": False}
    enlarged = F.interpolate(low[4:], scale_factor=2, mode=mode, **extra)
    print(f"{mode}: {10 * log10(1 / criterion(enlarged, high[4:]).item()):.4f} dB")
