"""An LSTM language model over words: tied weights, repackaged states, clipping, perplexity."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1111)
TEXT = "the cat sat on the mat and the dog sat on the log while the cat saw the dog run to the mat <eos> " * 6
words = sorted(set(TEXT.split()))
index = {word: i for i, word in enumerate(words)}
corpus = torch.tensor([index[word] for word in TEXT.split()], dtype=torch.long)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.2, tie_weights=True):
        super().__init__()
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.init_weights()

    def init_weights(self):
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        shape = (self.nlayers, bsz, self.nhid)
        return weight.new_zeros(shape), weight.new_zeros(shape)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


bptt = 7
train_data = batchify(corpus, 4)
model = RNNModel(len(words), 16, 16, 2)
print(model)
criterion = nn.NLLLoss()
lr = 5.0
for epoch in range(1, 4):
    model.train()
    total_loss = 0.0
    hidden = model.init_hidden(4)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, bptt)):
        seq_len = min(bptt, len(train_data) - 1 - i)
        data, targets = train_data[i : i + seq_len], train_data[i + 1 : i + 1 + seq_len].view(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total_loss += loss.item()
    mean = total_loss / (batch + 1)
    print(f"| epoch {epoch:3d} | lr {lr:02.2f} | loss {mean:5.2f} | ppl {math.exp(mean):8.2f}")
    lr /= 2.0
model.eval()
hidden = model.init_hidden(1)
token = torch.tensor([[index["the"]]])
with torch.no_grad():
    said = []
    for _ in range(12):
        output, hidden = model(token, hidden)
        weights = output.squeeze().div(1.0).exp()
        token.fill_(torch.multinomial(weights, 1)[0])
        said.append(words[int(token)])
print(" ".join(said))
