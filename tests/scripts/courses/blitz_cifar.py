"""A first image classifier, on made-up images of CIFAR's shape."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
classes = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
labels = torch.randint(0, 10, (64,))
images = torch.rand(64, 3, 32, 32) * 0.2 + labels.view(-1, 1, 1, 1) / 12.0
images = (images - 0.5) / 0.5
trainloader = DataLoader(TensorDataset(images, labels), batch_size=4, shuffle=True, num_workers=0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


net = Net()
print(net)
print(sum(p.numel() for p in net.parameters()), "parameters")
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(2):
    running_loss = 0.0
    for i, data in enumerate(trainloader, 0):
        inputs, targets = data
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if i % 4 == 3:
            print(f"[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 4:.3f}")
            running_loss = 0.0
print("Finished Training")

correct_pred = {name: 0 for name in classes}
total_pred = {name: 0 for name in classes}
with torch.no_grad():
    for inputs, targets in DataLoader(TensorDataset(images, labels), batch_size=16):
        _, predictions = torch.max(net(inputs), 1)
        for target, prediction in zip(targets, predictions):
            correct_pred[classes[target]] += int(target == prediction)
            total_pred[classes[target]] += 1
for name, count in correct_pred.items():
    if total_pred[name]:
        print(f"Accuracy for class: {name:5s} is {100 * count / total_pred[name]:.1f} %")
print(net.conv1.bias.grad[:3])
