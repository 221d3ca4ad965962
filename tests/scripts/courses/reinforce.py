"""REINFORCE with a baseline on a walk along a corridor; then an actor-critic with two heads."""

from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

torch.manual_seed(543)


class Corridor:
    def reset(self):
        self.place, self.time = 3, 0
        return self.seen()

    def seen(self):
        return F.one_hot(torch.tensor(self.place), 8).float()

    def step(self, action):
        self.place = max(0, min(7, self.place + (1 if action else -1)))
        self.time += 1
        done = self.place in (0, 7) or self.time >= 20
        return self.seen(), (1.0 if self.place == 7 else -0.05), done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(8, 16)
        self.dropout = nn.Dropout(p=0.2)
        self.affine2 = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=-1), self.value_head(x)


env = Corridor()
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=2e-2)
eps = torch.finfo(torch.float32).eps
running_reward = 0.0
for i_episode in range(1, 31):
    state, saved, rewards, done = env.reset(), [], [], False
    while not done:
        probs, _ = policy(state)
        m = Categorical(probs)
        action = m.sample()
        saved.append(m.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    running_reward = 0.05 * sum(rewards) + 0.95 * running_reward
    R, returns = 0, deque()
    for r in rewards[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    if len(returns) > 1:
        returns = (returns - returns.mean()) / (returns.std() + eps)
    loss = [-log_prob * R for log_prob, R in zip(saved, returns)]
    optimizer.zero_grad()
    loss = torch.stack(loss).sum()
    loss.backward()
    optimizer.step()
    if i_episode % 10 == 0:
        print(f"Episode {i_episode}\tsteps: {len(rewards)}\tAverage reward: {running_reward:.4f}")

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])
for i_episode in range(1, 16):
    state, saved, rewards, done = env.reset(), [], [], False
    while not done:
        probs, value = policy(state)
        m = Categorical(probs)
        action = m.sample()
        saved.append(SavedAction(m.log_prob(action), value))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    R, returns = 0, []
    for r in reversed(rewards):
        R = r + 0.99 * R
        returns.insert(0, R)
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(saved, returns):
        policy_losses.append(-log_prob * (R - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    if i_episode % 5 == 0:
        print(f"{i_episode}: loss {loss.item():.4f}, entropy {m.entropy().item():.4f}")
