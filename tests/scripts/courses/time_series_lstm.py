"""Forecasting sine waves with LSTM cells in float64 and LBFGS, then with nn.LSTM, windows and early stopping."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

np.random.seed(2)
torch.manual_seed(0)
T, L, N = 10, 40, 6
x = np.empty((N, L), "int64")
x[:] = np.array(range(L)) + np.random.randint(-4 * T, 4 * T, N).reshape(N, 1)
data = np.sin(x / 1.0 / T).astype("float64")


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 12)
        self.lstm2 = nn.LSTMCell(12, 12)
        self.linear = nn.Linear(12, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 12, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 12, dtype=torch.double)
        h_t2, c_t2 = h_t.clone(), c_t.clone()
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


input = torch.from_numpy(data[2:, :-1])
target = torch.from_numpy(data[2:, 1:])
seq = Sequence()
seq.double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.5, max_iter=4)
for i in range(2):
    print("STEP:", i)

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(input), target)
        print("loss:", f"{loss.item():.8f}")
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        future = 5
        pred = seq(torch.from_numpy(data[:2, :-1]), future=future)
        print("test loss:", f"{criterion(pred[:, :-future], torch.from_numpy(data[:2, 1:])).item():.8f}")

series = torch.sin(torch.arange(120) * 0.2)
windows = series.unfold(0, 13, 1)
inputs, targets = windows[:, :12].unsqueeze(-1), windows[:, 12]


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 8, num_layers=2, batch_first=True, dropout=0.1, proj_size=4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.head(out[:, -1]).squeeze(-1)


model = Forecast()
optimizer = optim.Adam(model.parameters(), lr=0.02)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
best, waited = float("inf"), 0
for epoch in range(12):
    model.train()
    optimizer.zero_grad()
    nn.functional.huber_loss(model(inputs[:80]), targets[:80]).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        valid = nn.functional.l1_loss(model(inputs[80:]), targets[80:]).item()
    scheduler.step(valid)
    if valid < best - 1e-4:
        best, waited = valid, 0
    else:
        waited += 1
    if epoch % 3 == 2:
        print(f"epoch {epoch} valid {valid:.5f} lr {optimizer.param_groups[0]['lr']}")
    if waited == 3:
        break
print(f"{best:.5f}")
