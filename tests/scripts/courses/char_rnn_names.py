"""Names and their languages: a recurrent net written by hand classifies them, another one makes new ones."""

import random
import string

import torch
import torch.nn as nn

torch.manual_seed(7)
random.seed(7)
NAMES = {
    "Italian": ["Rossi", "Bianchi", "Romano", "Ricci", "Marino", "Greco"],
    "Japanese": ["Sato", "Suzuki", "Tanaka", "Ito", "Yamamoto", "Kato"],
    "Scottish": ["Smith", "Brown", "Wilson", "Campbell", "Stewart", "Reid"],
}
categories = list(NAMES)
all_letters = string.ascii_letters + " .,;'-"
n_letters = len(all_letters) + 1


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for li, letter in enumerate(line):
        tensor[li][0][all_letters.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        hidden = torch.tanh(self.i2h(combined))
        return self.softmax(self.h2o(hidden)), hidden

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(n_letters, 24, len(categories))
criterion = nn.NLLLoss()
current_loss = 0.0
for step in range(1, 161):
    category = random.choice(categories)
    line = random.choice(NAMES[category])
    category_tensor = torch.tensor([categories.index(category)], dtype=torch.long)
    hidden = rnn.init_hidden()
    rnn.zero_grad()
    for letter in line_to_tensor(line):
        output, hidden = rnn(letter, hidden)
    loss = criterion(output, category_tensor)
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-0.05)
    current_loss += loss.item()
    if step % 40 == 0:
        guess = categories[output.topk(1)[1][0].item()]
        print(f"{step} {current_loss / 40:.4f} {line} / {guess} {'right' if guess == category else category}")
        current_loss = 0.0

confusion = torch.zeros(len(categories), len(categories))
with torch.no_grad():
    for row, category in enumerate(categories):
        for line in NAMES[category]:
            hidden = rnn.init_hidden()
            for letter in line_to_tensor(line):
                output, hidden = rnn(letter, hidden)
            confusion[row][output.argmax(1)] += 1
confusion /= confusion.sum(1, keepdim=True)
print(confusion)


class Generator(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(n_letters + len(categories), hidden)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(hidden, n_letters)

    def forward(self, x, state=None):
        y, state = self.lstm(x, state)
        return torch.log_softmax(self.out(self.drop(y)), -1), state


net = Generator()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(60):
    category = categories[step % 3]
    line = NAMES[category][step // 3 % 6]
    one_hot = torch.zeros(1, len(categories))
    one_hot[0, categories.index(category)] = 1
    letters = line_to_tensor(line)
    target = torch.tensor([all_letters.find(c) for c in line[1:]] + [n_letters - 1])
    output, _ = net(torch.cat([letters, one_hot.expand(len(line), 1, -1)], 2))
    loss = nn.functional.nll_loss(output.squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 14:
        print(f"{step + 1}: {loss.item():.5f}")
net.eval()
for category in categories:
    one_hot = torch.zeros(1, 1, len(categories))
    one_hot[0, 0, categories.index(category)] = 1
    name, state = category[0], None
    with torch.no_grad():
        for _ in range(8):
            output, state = net(torch.cat([line_to_tensor(name[-1]), one_hot], 2), state)
            top = output[0, 0].topk(1).indices.item()
            if top == n_letters - 1:
                break
            name += all_letters[top]
    print(category, name)
