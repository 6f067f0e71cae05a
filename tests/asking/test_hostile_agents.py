"""Files of agents that are made to hurt: no code runs unless it is trusted, and nothing grows without end."""

import base64
import io
import json
import pickle
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from policyspace import InputError, ask
from policyspace.asking import as_agent

torch, sb3 = pytest.importorskip("torch"), pytest.importorskip("stable_baselines3")


class Runs:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


def schedule(left):
    return 1e-3 * left


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """With functions where models of stable-baselines3 have them: schedules, kinds of layers."""
    path = tmp_path_factory.mktemp("agents") / "model.zip"
    layers = {"net_arch": {"pi": [16, 16], "vf": [16]}, "activation_fn": torch.nn.ReLU}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sb3.PPO(
            "MlpPolicy", "CartPole-v1", learning_rate=schedule, clip_range=schedule, policy_kwargs=layers, n_steps=16,
            batch_size=16, n_epochs=1, seed=0, device="cpu",
        )  # fmt: skip
        model.learn(32)
    model.save(path)
    return path


@pytest.fixture
def changed(honest, tmp_path):
    """The same file with other entries."""

    def write(said=None, **entries):
        path = tmp_path / "model.zip"
        with zipfile.ZipFile(honest) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                content = old.read(name)
                if name == "data":
                    content = json.dumps(json.loads(content) | (said or {})).encode()
                new.writestr(name, entries.get(name.replace(".", "_"), content))
        return path

    return write


def pickled(thing):
    return {
        ":type:": "x",
        ":serialized:": base64.b64encode(thing if isinstance(thing, bytes) else pickle.dumps(thing)).decode(),
    }


SEEN = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)


def test_an_honest_file_needs_no_trust_and_acts_alike(honest):
    free, trusted = (as_agent(honest, trust=trust) for trust in (False, True))
    np.testing.assert_array_equal(free.law(SEEN)[0].probabilities[0], trusted.law(SEEN)[0].probabilities[0])
    assert (
        ask(honest, "CartPole-v1", episodes=2).selected == ask(honest, "CartPole-v1", episodes=2, trust=True).selected
    )


@pytest.mark.parametrize("entry", ["policy_class", "observation_space", "policy_kwargs", "anything"])
def test_code_in_an_entry_runs_with_trust_alone(entry, changed, tmp_path):
    path = changed({entry: pickled({"a": [Runs(tmp_path / "ran")]})})
    with pytest.raises(InputError, match=rf"model.zip: its entry '{entry}' names 'pathlib.*--trust \(trust=True\)\.$"):
        as_agent(path)
    assert not (tmp_path / "ran").exists()
    with suppress(InputError):  # what comes out may be no policy
        as_agent(path, trust=True)
    assert (tmp_path / "ran").exists()


def test_code_in_what_is_for_training_alone_is_left_out(changed, tmp_path):
    agent = as_agent(changed({"lr_schedule": pickled(Runs(tmp_path / "ran"))}))
    agent.law(SEEN)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "thing",
    [
        b"(cos\nsystem\nS'touch ran'\no.",  # the opcodes of old
        b"(S'touch ran'\nios\nsystem\n.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy.ctypeslib\nload_library\n(S'a'\nS'b'\ntR.",
        b"ctorch.nn.modules.linear\nLinear\n(I1\nI1\ntR.",  # a class that is named, and made
        b"\x80\x04\x8c\x10gymnasium.spaces\x8c\x09box.Space\x93.",  # a name with a way inside
        b"\x80\x02cstable_baselines3.common.policies\nBasePolicy\nN}X\x07\x00\x00\x00predictK\x01s\x86b.",
        b"\x80\x04cposix\nsystem\n)}\x92.",
        b"cstable_baselines3.common.save_util\nload_from_pkl\n(S'a'\ntR.",
        b"cgymnasium.spaces.utils\nflatten\n.",
    ],
)
def test_no_way_of_calling_is_open(thing, changed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sb3.common.policies.BasePolicy.predict
    with pytest.raises(InputError, match=r"which can run any code when it is loaded|is damaged"):
        as_agent(changed({"policy_kwargs": pickled(thing)}))
    assert not Path("ran").exists()
    assert sb3.common.policies.BasePolicy.predict is before


def test_weights_are_weights(changed, tmp_path):
    out = io.BytesIO()
    torch.save({"weights": Runs(tmp_path / "ran")}, out)
    with pytest.raises(InputError, match=r"its entry 'policy.pth' holds more than weights, which can run any code"):
        as_agent(changed(policy_pth=out.getvalue()))
    assert not (tmp_path / "ran").exists()


def test_entries_that_unpack_without_end(changed, monkeypatch):
    path = changed({"note": "x" * (3 << 20)})
    as_agent(path)
    monkeypatch.setenv("POLICYSPACE_MAX_AGENT_TEXT_BYTES", str(1 << 20))
    with pytest.raises(InputError, match=r"model.zip: the bytes of its entry 'data' must be at most 1048576, found 31"):
        as_agent(path)
    monkeypatch.undo()
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", b"\0" * (8 << 20))
    path = changed(policy_pth=inner.getvalue())
    monkeypatch.setenv("POLICYSPACE_MAX_UNPACKED_BYTES", str(1 << 20))
    with pytest.raises(InputError, match="unpack to more than"):
        as_agent(path)


@pytest.mark.parametrize(
    "asked",
    [
        {"net_arch": [60_000, 60_000]},
        {"net_arch": [[[[[[[[[[[1]]]]]]]]]]]},
        {"net_arch": [1] * 10_000},
        {"net_arch": [1e300]},
        {"net_arch": [float("nan")]},
        {"features_extractor_kwargs": {"features_dim": 10**9}},
    ],
)
def test_networks_larger_than_their_file(asked, changed):
    with pytest.raises(InputError, match="bytes ask for networks of about"):
        as_agent(changed({"policy_kwargs": asked}))


def test_spaces_larger_than_their_file(changed):
    wide = spaces.Box(np.zeros(3, np.float32), np.ones(3, np.float32))
    wide._shape = (10**10,)
    with pytest.raises(InputError, match="bytes ask for networks of about"):
        as_agent(changed({"observation_space": pickled(wide)}))


@pytest.mark.parametrize(
    "content", [b"", b"PK\x05\x06" + b"\0" * 18, b"PK\x03\x04" + b"\xff" * 60 + b"PK\x05\x06" + b"\0" * 18]
)
def test_archives_of_nothing(content, tmp_path):
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InputError, match=r"a.zip: "):
        as_agent(tmp_path / "a.zip")


def test_files_of_other_libraries(tmp_path):
    module = torch.nn.Linear(3, 2)
    torch.save(module, tmp_path / "whole.pt")
    torch.jit.script(module).save(str(tmp_path / "script.pt"))
    (tmp_path / "model.joblib").write_bytes(pickle.dumps(Runs(tmp_path / "ran")))
    (tmp_path / "rllib").mkdir()
    for name in ("whole.pt", "script.pt", "model.joblib", "rllib"):
        with pytest.raises(InputError, match=rf"{name}: is a .*which can run any code when it is loaded.*--trust"):
            as_agent(tmp_path / name, "CartPole-v1")
    assert not (tmp_path / "ran").exists()
    (tmp_path / "weights.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(InputError, match=r"weights.safetensors: .*(not valid JSON|expected a clone|damaged)"):
        as_agent(tmp_path / "weights.safetensors", "CartPole-v1")
    place = {"observation_space": spaces.Box(-1, 1, (3,)), "action_space": spaces.Discrete(2)}
    for name in ("whole.pt", "script.pt"):
        law = as_agent(tmp_path / name, trust=True, **place).law(SEEN[:, :3])[0]
        expected = torch.softmax(module(torch.as_tensor(SEEN[:, :3])), 1).detach().numpy()
        np.testing.assert_allclose(law.probabilities[0], expected, rtol=1e-6)
