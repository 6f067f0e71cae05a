"""Agents of libraries that are not among those of the ordinary suite, asked with the real library; see `make test-peers`."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from policyspace import InputError, watch
from policyspace.asking import Inputs, as_agent, joined, rows_of

CARTPOLE = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32) * 0.2


class Masked(gymnasium.ObservationWrapper):
    """CartPole without its velocities."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Box(-5, 5, (2,), np.float32)

    def observation(self, observation):
        return observation[[0, 2]]


def test_a_recurrent_network_is_asked_with_its_memory():
    sb3_contrib = pytest.importorskip("sb3_contrib")
    env = Masked(gymnasium.make("CartPole-v1"))
    model = sb3_contrib.RecurrentPPO("MlpLstmPolicy", env, n_steps=64, seed=0, device="cpu").learn(256)
    agent = as_agent(model, env)
    assert agent.has_memory and agent.has_law
    rows = CARTPOLE[:, [0, 2]]
    memory, state, ours, theirs = agent.start(40), None, [], []
    for t in range(3):
        law, memory = agent.law(rows * (t + 1), memory)
        ours.append(law.probabilities[0].argmax(axis=1))
        action, state = model.predict(rows * (t + 1), state, np.full(40, t == 0), deterministic=True)
        theirs.append(action)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(memory[0].swapaxes(0, 1), state[0], atol=1e-6)
    again, _ = agent.law(rows[:7], rows_of(memory, slice(0, 7)))
    whole, _ = agent.law(rows, agent.copy_memory(memory))
    np.testing.assert_allclose(again.probabilities[0], whole.probabilities[0][:7], atol=1e-6)
    assert joined([rows_of(memory, [0]), rows_of(memory, [1])])[0].shape[0] == 2
    assert watch(env, agent, 2).num_rows > 10


@pytest.mark.parametrize("name", ["TRPO", "QRDQN", "MaskablePPO", "TQC", "CrossQ", "ARS"])
def test_algorithms_of_sb3_contrib(name):
    sb3_contrib = pytest.importorskip("sb3_contrib")
    env = "Pendulum-v1" if name in ("TQC", "CrossQ", "ARS") else "CartPole-v1"
    policy = "LinearPolicy" if name == "ARS" else "MlpPolicy"
    model = getattr(sb3_contrib, name)(policy, env, seed=0, device="cpu")
    agent = as_agent(model, env)
    rows = CARTPOLE[:, : agent.observation_space.shape[0]]
    law, _ = agent.law(rows)
    greedy = law.greedy()
    expected = model.predict(rows, deterministic=True)[0]
    if agent.action_type == "discrete":
        np.testing.assert_array_equal(greedy.probabilities[0].argmax(axis=1), expected)
    else:
        np.testing.assert_allclose(greedy.mean, expected, atol=1e-4)


def test_files_of_sb3_contrib(tmp_path):
    sb3_contrib = pytest.importorskip("sb3_contrib")
    sb3_contrib.TRPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu").save(tmp_path / "model.zip")
    agent = as_agent(tmp_path / "model.zip", "CartPole-v1", algorithm="TRPO")
    assert agent.law(CARTPOLE)[0].probabilities[0].shape == (40, 2)


def test_onnx(tmp_path):
    torch, onnxruntime = pytest.importorskip("torch"), pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).eval()
    expected = as_agent(module, "CartPole-v1").law(CARTPOLE)[0]
    for batch in (None, 1):
        path = tmp_path / f"model{batch}.onnx"
        shapes = None if batch else ({0: torch.export.Dim("batch")},)
        example = (torch.as_tensor(CARTPOLE[: batch or 3]),)
        torch.onnx.export(module, example, path, dynamo=True, dynamic_shapes=shapes)
        for given in (path, onnxruntime.InferenceSession(str(path))):
            law = as_agent(given, "CartPole-v1").law(CARTPOLE)[0]
            assert law.total_variation(expected).max() < 1e-5


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize("memory", [False, True])
def test_modules_of_rllib(env, memory, tmp_path):
    pytest.importorskip("ray")
    torch = pytest.importorskip("torch")
    from ray.rllib.algorithms.ppo.ppo_catalog import PPOCatalog
    from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    made = gymnasium.make(env)
    torch.manual_seed(0)
    module = DefaultPPOTorchRLModule(
        observation_space=made.observation_space,
        action_space=made.action_space,
        model_config=DefaultModelConfig(use_lstm=memory, max_seq_len=5),
        catalog_class=PPOCatalog,
    )
    agent = as_agent(module, env)
    assert agent.has_memory == memory
    rows = CARTPOLE[:, : made.observation_space.shape[0]]
    first, kept = agent.law(rows)
    second, _ = agent.law(rows, kept)
    assert (first.total_variation(second).max() > 0) == memory
    if not memory:
        with torch.no_grad():
            inputs = module.forward_inference({"obs": torch.as_tensor(rows)})["action_dist_inputs"].numpy()
        if env == "CartPole-v1":
            expected = np.exp(inputs) / np.exp(inputs).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(first.probabilities[0], expected, atol=1e-6)
        else:
            np.testing.assert_allclose(first.mean[:, 0], 2 * inputs[:, 0], atol=1e-6)  # −1 … 1 is torque −2 … 2
            np.testing.assert_allclose(first.sd[:, 0], 2 * np.exp(inputs[:, 1]), atol=1e-6)
        module.save_to_path(str(tmp_path / "module"))
        with pytest.raises(InputError, match="--trust"):
            as_agent(tmp_path / "module", env)
        again = as_agent(tmp_path / "module", env, trust=True).law(rows)[0]
        assert again.total_variation(first).max() < 1e-6
    assert watch(env, agent, 1).num_rows > 5


def test_functions_of_jax():
    jax = pytest.importorskip("jax")
    weights = jax.random.normal(jax.random.key(0), (4, 2))
    policy = jax.jit(lambda seen: jax.nn.softmax(seen @ weights))
    agent = as_agent(policy, "CartPole-v1")
    assert agent.at_once and agent.has_law
    np.testing.assert_allclose(agent.law(CARTPOLE)[0].probabilities[0], np.asarray(policy(CARTPOLE)), atol=1e-6)
    numbers = as_agent(lambda seen: (seen[:1], jax.numpy.ones(1)), "Pendulum-v1")
    assert numbers.law(CARTPOLE[:, :3])[0].kind == "normal"


def test_minigrid():
    minigrid = pytest.importorskip("minigrid")
    env = minigrid.wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-Empty-5x5-v0"))
    agent = as_agent(lambda seen: 2 if seen[3, 5, 0] in (1, 8) else 0, env)
    rows = np.stack([env.reset(seed=s)[0] for s in range(5)])
    inputs = Inputs.of(env.observation_space, observations=rows)
    assert len(inputs.groups) == 49
    moved = np.array(rows)
    moved[:, 3, 5, 0] = 2
    changed, same = (agent.law(inputs.replaced(rows, f"cell[{i},5]", moved))[0] for i in (3, 2))
    before = agent.law(rows)[0]
    assert changed.total_variation(before).max() == 1 and same.total_variation(before).max() == 0
    whole = gymnasium.make("MiniGrid-Empty-5x5-v0").observation_space  # with a text, which is left as it is
    assert "direction" in Inputs.of(whole).groups


BOX2D = ["LunarLander-v3", "BipedalWalker-v3"]
MUJOCO = [
    "Hopper",
    "HalfCheetah",
    "Walker2d",
    "Swimmer",
    "Reacher",
    "Pusher",
    "InvertedPendulum",
    "InvertedDoublePendulum",
]


@pytest.mark.parametrize("env", BOX2D + [f"{name}-v5" for name in MUJOCO])
def test_names_fit_their_environments(env):
    pytest.importorskip("mujoco" if env.endswith("v5") else "Box2D")
    space = gymnasium.make(env).observation_space
    inputs = Inputs.of(space, env_id=env)
    assert not any("observation" in name for name in inputs.features) and len(inputs.features) == space.shape[0]


def test_velocities_of_a_hopper_are_those_that_its_names_say():
    pytest.importorskip("mujoco")
    env = gymnasium.make("Hopper-v5")
    features = Inputs.of(env.observation_space, env_id="Hopper-v5").features
    seen = env.reset(seed=0)[0]
    data = env.unwrapped.data
    by_name = dict(zip(features, seen, strict=True))
    assert by_name["height"] == data.joint("rootz").qpos[0]
    assert by_name["leg_angle"] == data.joint("leg_joint").qpos[0]
    assert by_name["torso_velocity"] == pytest.approx(np.clip(data.joint("rooty").qvel[0], -10, 10))
    assert by_name["foot_velocity"] == pytest.approx(np.clip(data.joint("foot_joint").qvel[0], -10, 10))


def test_what_has_more_inputs_than_an_observation_is_refused():
    class Session:
        def get_inputs(self):
            return [type("Input", (), {"name": name, "shape": [None, 4]}) for name in ("seen", "state")]

        def run(self, *given):
            raise AssertionError

    with pytest.raises(InputError, match="must have one input, or those of the observation, found seen, state"):
        as_agent(Session(), "CartPole-v1")
