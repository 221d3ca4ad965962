"""PPO with a Gaussian policy and generalised advantages; then DQN with replay, a target net and Huber loss."""

import collections
import random

import torch
import torch.nn as nn
from torch.distributions import Normal

torch.manual_seed(1)
random.seed(1)


class Point:
    def reset(self):
        self.x, self.t = torch.tensor([1.5]), 0
        return self.x.clone()

    def step(self, action):
        self.x = (self.x + 0.3 * action.clamp(-1, 1)).clamp(-3, 3)
        self.t += 1
        return self.x.clone(), -self.x.abs().item(), self.t >= 12


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        self.critic = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        self.log_std = nn.Parameter(torch.zeros(1))
        for layer in (self.actor[0], self.critic[0]):
            nn.init.orthogonal_(layer.weight, 2**0.5)
            nn.init.constant_(layer.bias, 0.0)

    def forward(self, state):
        return Normal(self.actor(state), self.log_std.exp()), self.critic(state).squeeze(-1)


model, env = ActorCritic(), Point()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, eps=1e-5)
for iteration in range(4):
    states, actions, logs, rewards, values, dones = [], [], [], [], [], []
    state = env.reset()
    for _ in range(24):
        with torch.no_grad():
            dist, value = model(state)
            action = dist.sample()
        after, reward, done = env.step(action)
        for store, item in zip(
            (states, actions, logs, rewards, values, dones),
            (state, action, dist.log_prob(action).sum(), reward, value, float(done)),
        ):
            store.append(item)
        state = env.reset() if done else after
    states, actions, logs, values = (torch.stack(each) for each in (states, actions, logs, values))
    with torch.no_grad():
        last = model(state)[1]
    advantages, gae = torch.zeros(24), 0.0
    for t in reversed(range(24)):
        following = last if t == 23 else values[t + 1]
        delta = rewards[t] + 0.99 * following * (1 - dones[t]) - values[t]
        gae = delta + 0.99 * 0.95 * (1 - dones[t]) * gae
        advantages[t] = gae
    returns = advantages + values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(3):
        for batch in torch.randperm(24).split(12):
            dist, value = model(states[batch])
            ratio = (dist.log_prob(actions[batch]).sum(-1) - logs[batch]).exp()
            clipped = torch.clamp(ratio, 0.8, 1.2) * advantages[batch]
            policy_loss = -torch.min(ratio * advantages[batch], clipped).mean()
            loss = policy_loss + 0.5 * (returns[batch] - value).pow(2).mean() - 0.01 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
    print(f"{iteration}: reward {sum(rewards):.3f} loss {loss.item():.4f} std {model.log_std.exp().item():.4f}")

Transition = collections.namedtuple("Transition", "state action reward next_state done")
memory = collections.deque(maxlen=200)
online, target = (nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 2)) for _ in range(2))
target.load_state_dict(online.state_dict())
optimizer = torch.optim.RMSprop(online.parameters(), lr=2e-3)
state, losses = env.reset(), []
for step in range(60):
    if random.random() < 0.3:
        choice = random.randrange(2)
    else:
        with torch.no_grad():
            choice = online(state).argmax().item()
    after, reward, done = env.step(torch.tensor([1.0 if choice else -1.0]))
    memory.append(Transition(state, choice, reward, after, done))
    state = env.reset() if done else after
    if len(memory) >= 16:
        batch = Transition(*zip(*random.sample(memory, 16)))
        current = online(torch.stack(batch.state)).gather(1, torch.tensor(batch.action).unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = target(torch.stack(batch.next_state)).max(1).values
            wanted = torch.tensor(batch.reward) + 0.9 * best * (1 - torch.tensor(batch.done).float())
        loss = nn.SmoothL1Loss()(current, wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(online.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        for old, new in zip(target.parameters(), online.parameters()):
            old.data.mul_(0.95).add_(new.data, alpha=0.05)
print([f"{value:.4f}" for value in losses[::11]])
