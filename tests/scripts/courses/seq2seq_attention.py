"""Reversing sequences with a GRU encoder, additive attention, teacher forcing, packed inputs and greedy decoding."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(3)
random.seed(3)
PAD, SOS, EOS, VOCAB, MAX = 0, 1, 2, 9, 7


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size, padding_idx=PAD)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True, bidirectional=True)
        self.reduce = nn.Linear(2 * hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input, lengths):
        embedded = self.dropout(self.embedding(input))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        output, hidden = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        hidden = torch.tanh(self.reduce(torch.cat([hidden[0], hidden[1]], dim=1))).unsqueeze(0)
        return self.reduce(output), hidden


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1).masked_fill(mask.unsqueeze(1), float("-inf"))
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.1):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, encoder_outputs, hidden, mask, target=None, steps=MAX):
        decoder_input = torch.empty(encoder_outputs.size(0), 1, dtype=torch.long).fill_(SOS)
        outputs, attentions = [], []
        for i in range(target.size(1) if target is not None else steps):
            embedded = self.dropout(self.embedding(decoder_input))
            context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs, mask)
            output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            if target is not None:
                decoder_input = target[:, i].unsqueeze(1)
            else:
                decoder_input = output.topk(1)[1].squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), torch.cat(attentions, dim=1)


def make_batch(size):
    pairs = [[random.randrange(3, VOCAB) for _ in range(random.randint(2, 5))] for _ in range(size)]
    source = [torch.tensor([*p, EOS]) for p in pairs]
    target = [torch.tensor([*reversed(p), EOS]) for p in pairs]
    lengths = torch.tensor([len(s) for s in source])
    return pad_sequence(source, batch_first=True), pad_sequence(target, batch_first=True), lengths


encoder, decoder = EncoderRNN(VOCAB, 24), AttnDecoderRNN(24, VOCAB)
encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=0.01)
criterion = nn.NLLLoss(ignore_index=PAD)
for step in range(1, 31):
    source, target, lengths = make_batch(8)
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    encoder_outputs, hidden = encoder(source, lengths)
    outputs, _ = decoder(encoder_outputs, hidden, source == PAD, target)
    loss = criterion(outputs.view(-1, outputs.size(-1)), target.view(-1))
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    if step % 6 == 0:
        print(f"{step} ({step / 30:.0%}) {loss.item():.4f}")
encoder.eval()
decoder.eval()
with torch.no_grad():
    source, target, lengths = make_batch(2)
    outputs, attention = decoder(*encoder(source, lengths), source == PAD)
    for row in range(2):
        print(source[row].tolist(), "->", outputs.argmax(-1)[row].tolist(), "wanted", target[row].tolist())
print(torch.allclose(attention.sum(-1), torch.ones(2, 7)))
