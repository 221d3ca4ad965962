"""A graph convolution net with a dense, normalised adjacency; and a graph attention layer."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

torch.manual_seed(42)


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.matmul(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return self.__class__.__name__ + f" ({self.in_features} -> {self.out_features})"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


class GraphAttention(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.W = nn.Parameter(torch.empty(in_features, out_features))
        self.a = nn.Parameter(torch.empty(2 * out_features, 1))
        nn.init.xavier_uniform_(self.W, gain=1.414)
        nn.init.xavier_normal_(self.a)
        self.leaky = nn.LeakyReLU(0.2)

    def forward(self, h, adj):
        Wh = h @ self.W
        first, second = self.a.chunk(2)
        e = self.leaky(Wh @ first + (Wh @ second).T)
        attention = torch.where(adj > 0, e, torch.full_like(e, -9e15)).softmax(dim=1)
        return F.elu(attention @ Wh)


nodes, classes = 24, 3
labels = torch.arange(nodes) % classes
same = labels.unsqueeze(0) == labels.unsqueeze(1)
adj = torch.bernoulli(torch.where(same, 0.5, 0.05))
adj = torch.maximum(adj, adj.t()).fill_diagonal_(1)
degree = adj.sum(1).pow(-0.5)
degree[torch.isinf(degree)] = 0.0
norm = torch.diag(degree) @ adj @ torch.diag(degree)
features = F.one_hot(labels, classes).float() + torch.randn(nodes, classes)
idx_train, idx_test = torch.randperm(nodes).split([9, 15])
model = GCN(3, 8, classes, 0.5)
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
for epoch in range(20):
    model.train()
    optimizer.zero_grad()
    output = model(features, norm)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    if epoch % 5 == 4:
        model.eval()
        output = model(features, norm)
        correct = output[idx_test].max(1)[1].type_as(labels).eq(labels[idx_test]).double().sum()
        print(f"Epoch: {epoch + 1:04d} loss_train: {loss_train.item():.4f} acc_test: {correct / len(idx_test):.4f}")
attend = GraphAttention(3, 4)
out = attend(features, adj)
out.square().mean().backward()
print(out[:2], attend.a.grad.norm())
src, dst = adj.nonzero(as_tuple=True)
gathered = torch.zeros(nodes, 3).index_add_(0, dst, features[src])
mean = torch.zeros(nodes, 3).scatter_reduce(0, dst.unsqueeze(1).expand(-1, 3), features[src], "mean", include_self=False)
print(torch.allclose(gathered, adj.T @ features, atol=1e-5), mean[0])
