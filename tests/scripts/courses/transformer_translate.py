"""nn.Transformer on a toy translation: masks, padding, label smoothing, Noam's schedule, greedy decoding."""

import math

import torch
import torch.nn as nn
from torch import Tensor

torch.manual_seed(0)
PAD, BOS, EOS, VOCAB = 0, 1, 2, 14


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, dropout, maxlen=50):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding.unsqueeze(-2))

    def forward(self, token_embedding: Tensor):
        return self.dropout(token_embedding + self.pos_embedding[: token_embedding.size(0), :])


class Seq2SeqTransformer(nn.Module):
    def __init__(self, size=16, heads=2):
        super().__init__()
        self.transformer = nn.Transformer(size, heads, 2, 2, 32, dropout=0.1)
        self.generator = nn.Linear(size, VOCAB)
        self.embed = nn.Embedding(VOCAB, size)
        self.place = PositionalEncoding(size, 0.1)
        self.size = size

    def tokens(self, t):
        return self.place(self.embed(t.long()) * math.sqrt(self.size))

    def forward(self, src, trg, src_mask, tgt_mask, src_padding, tgt_padding):
        outs = self.transformer(
            self.tokens(src), self.tokens(trg), src_mask, tgt_mask, None, src_padding, tgt_padding, src_padding
        )
        return self.generator(outs)


def masks(src, tgt):
    tgt_mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[0])
    src_mask = torch.zeros((src.shape[0], src.shape[0])).type(torch.bool)
    return src_mask, tgt_mask.bool(), (src == PAD).transpose(0, 1), (tgt == PAD).transpose(0, 1)


def batch(count):
    length = torch.randint(3, 6, (count,))
    src, tgt = torch.zeros(7, count, dtype=torch.long), torch.zeros(7, count, dtype=torch.long)
    for i, n in enumerate(length.tolist()):
        body = torch.randint(3, VOCAB, (n,))
        src[: n + 2, i] = torch.cat([torch.tensor([BOS]), body, torch.tensor([EOS])])
        tgt[: n + 2, i] = torch.cat([torch.tensor([BOS]), body.flip(0), torch.tensor([EOS])])
    return src, tgt


model = Seq2SeqTransformer()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
noam = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: 16**-0.5 * min((step + 1) ** -0.5, (step + 1) * 20**-1.5)
)
for step in range(12):
    src, tgt = batch(6)
    logits = model(src, tgt[:-1], *masks(src, tgt[:-1]))
    loss = loss_fn(logits.reshape(-1, VOCAB), tgt[1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    noam.step()
    if step % 3 == 2:
        print(f"{step} loss {loss.item():.3f} lr {noam.get_last_lr()[0]:.5f}")
model.eval()
src, tgt = batch(1)
with torch.no_grad():
    memory = model.transformer.encoder(model.tokens(src), None)
    ys = torch.ones(1, 1).fill_(BOS).type(torch.long)
    for _ in range(6):
        mask = nn.Transformer.generate_square_subsequent_mask(ys.size(0))
        out = model.transformer.decoder(model.tokens(ys), memory, mask).transpose(0, 1)
        word = model.generator(out[:, -1]).max(dim=1)[1].item()
        ys = torch.cat([ys, torch.ones(1, 1).type_as(src).fill_(word)], dim=0)
        if word == EOS:
            break
print(ys.flatten().tolist())
print(nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, activation="gelu", batch_first=True))
