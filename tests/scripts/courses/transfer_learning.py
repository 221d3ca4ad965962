"""Fine-tuning: a frozen backbone with a new head, phases, the best weights kept."""

import copy

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler

torch.manual_seed(0)


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(8, 8), BasicBlock(8, 8))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2), BasicBlock(16, 16))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


labels = torch.arange(24) % 2
images = torch.randn(24, 3, 32, 32) + labels.view(-1, 1, 1, 1) * 0.8
phases = {"train": (images[:16], labels[:16]), "val": (images[16:], labels[16:])}
model_ft = ResNet()
for param in model_ft.parameters():
    param.requires_grad = False
num_ftrs = model_ft.fc.in_features
model_ft.fc = nn.Linear(num_ftrs, 2)
print([name for name, p in model_ft.named_parameters() if p.requires_grad])
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
optimizer = optim.SGD(model_ft.fc.parameters(), lr=0.05, momentum=0.9)
scheduler = lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
best_acc, best = 0.0, copy.deepcopy(model_ft.state_dict())
for epoch in range(4):
    for phase in ["train", "val"]:
        model_ft.train(phase == "train")
        running_loss, running_corrects = 0.0, 0
        x, y = phases[phase]
        for inputs, targets in zip(x.split(8), y.split(8)):
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model_ft(inputs)
                _, preds = torch.max(outputs, 1)
                loss = criterion(outputs, targets)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * inputs.size(0)
            running_corrects += torch.sum(preds == targets.data)
        if phase == "train":
            scheduler.step()
        epoch_acc = running_corrects.double() / len(x)
        print(f"{epoch} {phase} Loss: {running_loss / len(x):.4f} Acc: {epoch_acc:.4f}")
        if phase == "val" and epoch_acc > best_acc:
            best_acc, best = epoch_acc, copy.deepcopy(model_ft.state_dict())
print(f"Best val Acc: {best_acc:4f}")
print(model_ft.load_state_dict(best))
for param in model_ft.layer2.parameters():
    param.requires_grad_(True)
optimizer = optim.AdamW(
    [{"params": model_ft.layer2.parameters(), "lr": 1e-3}, {"params": model_ft.fc.parameters(), "lr": 1e-2}]
)
print(optimizer)
for inputs, targets in zip(images.split(12), labels.split(12)):
    loss = criterion(model_ft(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
print(model_ft.bn1.num_batches_tracked, model_ft.bn1.running_mean[:4])
