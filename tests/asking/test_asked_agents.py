"""Agents that are asked: their laws are those that the library's own samples and densities show."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sklearn.linear_model import LinearRegression, LogisticRegression
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3

from policyspace import InputError, watch
from policyspace.asking import AskedAgent, as_agent, joined, rows_of

BOX = spaces.Box(-1, 1, (3,), np.float32)
ENDS = spaces.Box(np.array([-1, -2], np.float32), np.array([1, 2], np.float32))


class Still(gymnasium.Env):
    """Observations drawn from a space, episodes of five steps."""

    def __init__(self, observation_space=BOX, action_space=ENDS):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.now = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.now += 1
        return self.observation_space.sample(), 0.0, self.now == 5, False, {}


def seen(space=BOX, n=40):
    space.seed(1)
    rows = [space.sample() for _ in range(n)]
    return (
        {key: np.stack([row[key] for row in rows]) for key in space}
        if isinstance(space, spaces.Dict)
        else np.stack(rows)
    )


def shares(model, observation, k, n=4000):
    """How often a model of stable-baselines3 draws each action in one state."""
    many = np.repeat(observation[None], n, axis=0)
    return np.bincount(model.predict(many)[0].ravel(), minlength=k) / n


@pytest.mark.parametrize("kind", [PPO, A2C])
def test_choices_of_actors(kind):
    model = kind("MlpPolicy", Still(action_space=spaces.Discrete(4)), n_steps=8, device="cpu", seed=0)
    with torch.no_grad():
        model.policy.action_net.weight *= 50
    agent, rows = as_agent(model), seen()
    law, memory = agent.law(rows)
    assert agent.action_type == "discrete" and agent.num_actions == 4 and memory is None and not agent.deterministic
    np.testing.assert_allclose(law.probabilities[0][0], shares(model, rows[0], 4), atol=0.03)
    np.testing.assert_allclose(law.probabilities[0].sum(axis=1), 1)
    assert set(np.unique(as_agent(model, deterministic=True).law(rows)[0].probabilities[0])) == {0, 1}


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(3)])
def test_several_choices(space):
    model = PPO("MlpPolicy", Still(action_space=space), n_steps=8, device="cpu", seed=0)
    agent, rows = as_agent(model, Still(action_space=space)), seen()
    law, _ = agent.law(rows)
    actions = agent.act(rows, np.random.default_rng(0))[0]
    assert space.contains(actions[0]) and actions.shape == (40, *space.shape)
    with torch.no_grad():
        expected = model.policy.evaluate_actions(torch.as_tensor(rows), torch.as_tensor(actions).float())[1].numpy()
    np.testing.assert_allclose(law.log_density(actions), expected, atol=1e-5)


@pytest.mark.parametrize("use_sde", [False, True])
def test_numbers_of_actors_are_clipped_to_the_ends(use_sde):
    model = PPO("MlpPolicy", Still(), n_steps=8, device="cpu", seed=0, use_sde=use_sde)
    with torch.no_grad():
        model.policy.log_std += 1.0
    agent, rows = as_agent(model), seen()
    law, _ = agent.law(rows)
    drawn = np.concatenate([agent.act(rows[:1], np.random.default_rng(i))[0] for i in range(2000)])
    mass = (drawn == ENDS.low).mean(axis=0)
    with torch.no_grad():
        policy = model.policy.get_distribution(torch.as_tensor(rows[:1])).distribution
        expected = policy.cdf(torch.as_tensor(ENDS.low)).numpy()[0]
    np.testing.assert_allclose(mass, expected, atol=0.04)
    assert law.total_variation(law).max() == 0 and agent.repeats(rows)


def test_squashed_numbers():
    model = SAC("MlpPolicy", Still(), device="cpu", seed=0)
    agent, rows = as_agent(model), seen()
    law, _ = agent.law(rows)
    many = model.predict(np.repeat(rows[:1], 5000, axis=0))[0]
    ours = law.take(np.zeros(5000, dtype=int)).sample(np.random.default_rng(0))
    np.testing.assert_allclose(ours.mean(axis=0), many.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(ours.std(axis=0), many.std(axis=0), atol=0.05)
    np.testing.assert_allclose(law.greedy().mean, model.predict(rows, deterministic=True)[0], atol=1e-5)


@pytest.mark.parametrize("kind", [TD3, DDPG])
def test_deterministic_numbers(kind):
    model = kind("MlpPolicy", Still(), device="cpu", seed=0)
    agent, rows = as_agent(model), seen()
    assert agent.deterministic and agent.law(rows)[0].kind == "point"
    np.testing.assert_allclose(agent.law(rows)[0].mean, model.predict(rows)[0], atol=1e-6)


def test_a_dqn_explores_as_it_did():
    model = DQN("MlpPolicy", Still(action_space=spaces.Discrete(3)), device="cpu", seed=0)
    rows = seen()
    model.exploration_rate = 0.3
    law, _ = as_agent(model).law(rows)
    best = model.predict(rows, deterministic=True)[0]
    np.testing.assert_allclose(law.probabilities[0][np.arange(40), best], 0.8)
    model.exploration_rate = 0.0
    assert as_agent(model).deterministic


def test_dicts_and_paths(tmp_path):
    space = spaces.Dict(position=BOX, lamp=spaces.Discrete(3))
    model = PPO("MultiInputPolicy", Still(space, spaces.Discrete(2)), n_steps=8, device="cpu", seed=0)
    model.save(tmp_path / "model.zip")
    rows = seen(space)
    laws = [as_agent(one, Still(space, spaces.Discrete(2))).law(rows)[0] for one in (model, tmp_path / "model.zip")]
    assert laws[0].total_variation(laws[1]).max() < 1e-6
    with pytest.raises(InputError, match=r"was made for .* found .*: use its environment"):
        as_agent(model, Still(BOX, spaces.Discrete(2)))


class Actor(torch.nn.Module):
    """As cleanrl writes them."""

    def __init__(self, continuous=False):
        super().__init__()
        self.actor_mean, self.log_sd = torch.nn.Linear(3, 2), torch.nn.Parameter(torch.tensor([0.3, -0.5]))
        self.critic, self.continuous = torch.nn.Linear(3, 1), continuous

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        if self.continuous:
            law = torch.distributions.Normal(mean, self.log_sd.exp().expand_as(mean))
            action = law.sample() if action is None else action
            return action, law.log_prob(action).sum(1), law.entropy().sum(1), self.critic(x)
        law = torch.distributions.Categorical(logits=mean)
        action = law.sample() if action is None else action
        return action, law.log_prob(action), law.entropy(), self.critic(x)


def test_cleanrl_agents_show_their_law_by_their_densities():
    torch.manual_seed(0)
    rows = seen()
    module = Actor()
    expected = torch.softmax(module.actor_mean(torch.as_tensor(rows)), 1).detach().numpy()
    np.testing.assert_allclose(
        as_agent(module, Still(action_space=spaces.Discrete(2))).law(rows)[0].probabilities[0], expected, atol=1e-6
    )
    module = Actor(continuous=True)
    law = as_agent(module, Still()).law(rows)[0]
    np.testing.assert_allclose(law.mean, module.actor_mean(torch.as_tensor(rows)).detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(law.sd[0], np.exp([0.3, -0.5]), atol=1e-6)


class Returns(torch.nn.Module):
    def __init__(self, answer):
        super().__init__()
        self.layer, self.answer = torch.nn.Linear(3, 2), answer

    def forward(self, x):
        return self.answer(self.layer(x))


@pytest.mark.parametrize(
    "answer, space, kind",
    [
        (lambda y: y, spaces.Discrete(2), "categorical"),
        (lambda y: (y, y.sum(1, keepdim=True)), spaces.Discrete(2), "categorical"),  # logits and value
        (lambda y: torch.softmax(y, 1), spaces.Discrete(2), "categorical"),
        (lambda y: torch.distributions.Categorical(logits=y), spaces.Discrete(2), "categorical"),
        (lambda y: {"logits": y}, spaces.Discrete(2), "categorical"),
        (lambda y: y, ENDS, "point"),
        (lambda y: (y, torch.full_like(y, 0.5)), ENDS, "normal"),
        (lambda y: torch.distributions.Independent(torch.distributions.Normal(y, 0.5 + 0 * y), 1), ENDS, "normal"),
    ],
)
def test_modules_of_torch(answer, space, kind):
    torch.manual_seed(0)
    module, rows = Returns(answer), seen()
    law, _ = as_agent(module, Still(action_space=space)).law(rows)
    numbers = module.layer(torch.as_tensor(rows)).detach().numpy()
    assert law.kind == kind
    if kind == "categorical":
        expected = np.exp(numbers) / np.exp(numbers).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(law.probabilities[0], expected, atol=1e-6)
    else:
        np.testing.assert_allclose(law.mean, numbers, atol=1e-6)
        assert kind == "point" or (law.sd == 0.5).all()


def test_a_tanh_of_torch_is_squashed():
    def squashed(y):
        base = torch.distributions.Normal(y, 0.7 + 0 * y)
        return torch.distributions.TransformedDistribution(base, torch.distributions.TanhTransform())

    law = as_agent(Returns(squashed), Still()).law(seen())[0]
    assert law.squashed and (law.sd == pytest.approx(0.7))


def test_files_of_torch(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    torch.save(module, tmp_path / "whole.pt")
    torch.save(module.state_dict(), tmp_path / "weights.pth")
    env = Still(action_space=spaces.Discrete(2))
    first, second = (as_agent(one, env, trust=True).law(seen())[0] for one in (module, tmp_path / "whole.pt"))
    assert first.total_variation(second).max() == 0
    with pytest.raises(InputError, match=r"weights.pth: .*expected a whole module, found weights alone"):
        as_agent(tmp_path / "weights.pth", env)


def test_estimators_of_scikit_learn():
    rows = seen(n=60)
    model = LogisticRegression().fit(rows, np.where(rows[:, 0] > 0, 2, 0))  # never saw the action 1
    law = as_agent(model, Still(action_space=spaces.Discrete(3))).law(rows)[0]
    np.testing.assert_allclose(law.probabilities[0][:, [0, 2]], model.predict_proba(rows))
    assert (law.probabilities[0][:, 1] == 0).all()
    regression = LinearRegression().fit(rows, rows[:, :2] * 3)
    found = as_agent(regression, Still()).law(rows)[0]
    np.testing.assert_allclose(found.mean, np.clip(rows[:, :2] * 3, ENDS.low, ENDS.high), atol=1e-6)


def test_functions_of_one_observation_and_of_several():
    weights = np.random.default_rng(0).normal(size=(3, 2))
    env = Still(action_space=spaces.Discrete(2))

    def probabilities(observation):
        grown = np.exp(observation @ weights)
        return grown / grown.sum(axis=-1, keepdims=True)

    agent = as_agent(probabilities, env)
    assert agent.at_once and agent.has_law and not agent.deterministic
    np.testing.assert_allclose(agent.law(seen())[0].probabilities[0], probabilities(seen()))
    one = as_agent(lambda observation: int(observation[2] > 0), env)  # of a batch, its third row
    assert not one.at_once and one.deterministic
    np.testing.assert_array_equal(one.act(seen(), np.random.default_rng(0))[0], seen()[:, 2] > 0)
    continuous = as_agent(lambda seen: (seen[..., :2], np.full(2, 0.3)), Still())
    assert continuous.law(seen())[0].kind == "normal"


def test_a_function_with_chances_of_its_own_has_no_law():
    rng = np.random.default_rng(0)
    agent = as_agent(lambda observation: int(rng.random() < 0.5), Still(action_space=spaces.Discrete(2)))
    assert not agent.has_law and not agent.deterministic and not agent.repeats(seen())
    assert 10 < agent.act(seen(), rng)[0].sum() < 30
    with pytest.raises(InputError, match="differ when asked again"):
        agent.law(seen())


def test_a_function_with_a_memory():
    """It does now what the first number said before."""

    def late(observation, memory):
        return int((0 if memory is None else memory) > 0), float(observation[0])

    agent = as_agent(late, Still(action_space=spaces.Discrete(2)))
    rows = seen()
    assert agent.has_memory
    law, memory = agent.law(rows)
    assert (law.probabilities[0][:, 0] == 1).all()
    kept = agent.copy_memory(memory)
    later, _ = agent.law(rows[::-1], memory)
    np.testing.assert_array_equal(later.probabilities[0][:, 1], rows[:, 0] > 0)
    np.testing.assert_array_equal(kept, memory)
    part, _ = agent.law(rows[:5], rows_of(memory, slice(0, 5)))
    np.testing.assert_array_equal(part.probabilities[0], later.probabilities[0][:5])
    assert joined([rows_of(memory, [0]), rows_of(memory, [1])]).tolist() == memory[:2].tolist()


class Remembers:
    """As agents with a memory of stable-baselines3 are told to play."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return int((0 if state is None else state[0]) > 0), (float(observation[0]),)


def test_whatever_has_predict_and_a_state():
    agent = as_agent(Remembers(), Still(action_space=spaces.Discrete(2)))
    assert agent.has_memory
    _, memory = agent.law(seen())
    np.testing.assert_array_equal(agent.law(seen(), memory)[0].probabilities[0][:, 1], seen()[:, 0] > 0)


def test_every_agent_can_be_watched():
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=8, device="cpu", seed=0)
    logs = [watch("CartPole-v1", as_agent(model), 3, seed=4) for _ in range(2)]
    np.testing.assert_array_equal(logs[0].features, logs[1].features)
    assert set(np.unique(logs[0].actions)) == {0, 1}

    def late(observation, memory):
        return (0 if memory is None else memory), int(observation[2] > 0)

    log = watch("CartPole-v1", as_agent(late, "CartPole-v1"), 3, seed=4)
    starts = np.append(True, np.diff(log.episodes) != 0)
    expected = np.where(starts, 0, np.roll(log.features[:, 2] > 0, 1))
    np.testing.assert_array_equal(log.actions, expected)


@pytest.mark.parametrize(
    "agent, message",
    [
        (3, "'int' is no known kind of agent: write a function of one observation"),
        (
            lambda seen: seen,
            r"returns an array of the shape \(3,\), which is no action of Discrete\(2\): write a function",
        ),
        (lambda seen: 7, r"actions must be in Discrete\(2\), found 7"),
        (lambda seen: np.array([0.5, 0.9]), r"sum to 1, found others from <lambda>: return softmax\(logits\)"),
        (lambda seen: 1 / 0, "the agent <lambda> failed .*ZeroDivisionError"),
        ("none.zip", "there is no such file"),
        ("none.onnx", "there is no such file"),
    ],
)
def test_what_is_no_agent_is_one_sentence(agent, message):
    with pytest.raises(InputError, match=message):
        as_agent(agent, Still(action_space=spaces.Discrete(2)))


def test_spaces_must_be_known():
    with pytest.raises(InputError, match="found no spaces: name its environment"):
        as_agent(lambda seen: 0)
    assert isinstance(as_agent(lambda seen: 0, "CartPole-v1"), AskedAgent)
