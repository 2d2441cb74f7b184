"""Exports every type of causal language model, small and random, and compares what it generates.

    python benchmarks/llm_coverage.py [--only TYPE ...] [--again]

A prompt of 23 tokens is read in chunks of 8, the last of them padded, then 16 tokens are decoded
greedily by LiteRT: they must be those of transformers' own generate in float32. Each type has a
process of its own. Writes docs/llm_coverage.md and .json beside it; types that the record has as
good are not run again, unless named by --only or --again is given.
"""

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for tests.llm, which has the engine's way to call a model
REPORT = ROOT / "docs" / "llm_coverage"
BOUND = 1e-3  # largest difference of a logit / largest logit
PROMPT, STEPS, CACHE, CHUNK = 23, 16, 48, 8
NEVER = 1 << 20  # no token: generation goes on
Row = dict[str, Any]

MEANING = {
    "ok": "the same 16 tokens, logits within 0.001 of the largest",
    "differs": "exports and runs, but gives other tokens or logits",
    "refused": "an error of ours that says what is not supported",
    "fails": "any other error, or out of time or memory",
    "no reference": "transformers itself does not build or run the small model",
}
FIRST = (  # named in the goals of this project; run before the others
    "llama qwen2 qwen3 qwen3_moe gemma gemma2 gemma3_text gemma3n_text phi phi3 mistral mixtral "
    "smollm3 granite granitemoe olmo2 opt gpt2 gpt_neox gptj falcon bloom mpt stablelm starcoder2 "
    "cohere2 deepseek_v2 deepseek_v3 glm4 internlm3 mamba mamba2 falcon_mamba jamba zamba2 lfm2 "
    "rwkv bitnet nemotron exaone4 ernie4_5 hunyuan_v1_dense granitemoehybrid falcon_h1 qwen3_next "
    "recurrent_gemma xglm"
).split()


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TYPE", help="run these types only")
    parser.add_argument("--again", action="store_true", help="run those that were good, too")
    parser.add_argument("--timeout", type=int, default=300, help="seconds a type may take")
    parser.add_argument("--memory", type=float, default=12, help="GB of addresses it may take")
    options = parser.parse_args()
    _prepare()
    import llm_configs

    rows = {r["type"]: r for r in _recorded()}
    for kind in options.only or _order(llm_configs.types()):
        if options.only or options.again or rows.get(kind, {}).get("status") != "ok":
            rows[kind] = _in_child(kind, options.timeout, options.memory)
            print(_line(rows[kind]), flush=True)
            known = llm_configs.types()
            _write([rows[name] for name in known if name in rows], len(known))
    return 0


def _order(types: list[str]) -> list[str]:
    return [*FIRST, *(t for t in types if t not in FIRST)]


def _recorded() -> list[Row]:
    path = REPORT.with_suffix(".json")
    return json.loads(path.read_text()) if path.exists() else []


def _prepare() -> None:
    """Import once, before the processes part, what takes seconds."""
    import torch
    import transformers

    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    measure("llama")


def measure(kind: str) -> Row:
    """Export a type, run it, and say how it compares."""
    import llm_configs
    import torch

    start = time.process_time()
    prompt = torch.randint(0, 256, (1, PROMPT), generator=torch.Generator().manual_seed(3))
    try:
        model = llm_configs.model(kind)
        tokens, logits = _expected(model, prompt)
    except Exception as error:  # whatever the model's code raises
        return _row(kind, "no reference", _told(error), start)
    try:
        got, got_logits = _exported(model, prompt[0].numpy())
    except Exception as error:
        from litert_torch.errors import UnsupportedCaseError

        refused = isinstance(error, UnsupportedCaseError)
        return _row(kind, "refused" if refused else "fails", _told(error), start)
    error = float(abs(got_logits - logits).max() / abs(logits).max())
    same = next((i for i in range(STEPS) if got[i] != tokens[i]), STEPS)
    good = same == STEPS and error < BOUND
    detail = "" if good else f"{same} of {STEPS} tokens agree"
    return _row(kind, "ok" if good else "differs", detail, start) | {
        "error": error,
        "distinct": len(set(tokens)),
    }


def _expected(model: Any, prompt: Any) -> tuple[list[int], Any]:
    """What transformers generates, and the logits [STEPS, vocabulary] before each token."""
    import torch
    from transformers import GenerationConfig

    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=STEPS,
        pad_token_id=0,
        eos_token_id=NEVER,
        return_dict_in_generate=True,
        output_logits=True,
    )
    with torch.no_grad():
        result = model.generate(prompt, settings, attention_mask=torch.ones_like(prompt))
    logits = torch.cat(result.logits).float().numpy()
    if not (abs(logits) < 1e30).all():
        raise ValueError("the logits are not finite")
    return result.sequences[0, PROMPT:].tolist(), logits


def _exported(model: Any, prompt: Any) -> tuple[list[int], Any]:
    import numpy as np

    from litert_torch import llm
    from tests.llm import tiny_models
    from tests.llm.running import Runner

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.litertlm"
        llm.export(
            model,
            path,
            tokenizer=tiny_models.tokenizer(),
            cache_length=CACHE,
            prefill_lengths=[CHUNK],
            progress=False,
        )
        runner = Runner(path)
    runner.prefill(prompt[:-1])
    tokens, logits = [int(prompt[-1])], []
    for _ in range(STEPS):
        logits.append(runner.decode(tokens[-1]))
        tokens.append(int(logits[-1].argmax()))
    return tokens[1:], np.stack(logits)


def _row(kind: str, status: str, detail: str, start: float) -> Row:
    seconds = round(time.process_time() - start, 1)
    return {"type": kind, "status": status, "detail": detail, "seconds": seconds}


def _told(error: BaseException) -> str:
    """The error and the place in the model's or our code where it happened."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    text = " ".join(str(error).split())[:240]
    frames = [
        f"{Path(f.filename).name}:{f.lineno}"
        for f in traceback.extract_tb(error.__traceback__)
        if "/transformers/" in f.filename or "/litert_torch/" in f.filename
    ]
    return f"{type(error).__name__}: {text}" + (f" ({frames[-1]})" if frames else "")


def _in_child(kind: str, timeout: int, memory: float) -> Row:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(kind, writer, timeout, memory)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    if text:
        return json.loads(text)
    late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
    detail = f"not done after {timeout} s" if late else f"the process ended with status {status}"
    return {"type": kind, "status": "fails", "detail": detail, "seconds": 0.0}


def _child(kind: str, writer: int, timeout: int, memory: float) -> None:
    signal.alarm(timeout)
    limit = int(memory * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        os.write(writer, json.dumps(measure(kind)).encode())
    except BaseException as error:
        os.write(writer, json.dumps(_row(kind, "fails", _told(error), 0.0)).encode())
    finally:
        os._exit(0)


def _line(row: Row) -> str:
    error = f" {row['error']:.1e}" if "error" in row else ""
    return f"{row['type']}: {row['status']}{error} {row['detail']} [{row['seconds']} s]"


def _write(rows: list[Row], known: int) -> None:
    REPORT.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    REPORT.with_suffix(".md").write_text(_markdown(rows, known))


def _markdown(rows: list[Row], known: int) -> str:
    import transformers

    count = {status: sum(r["status"] == status for r in rows) for status in MEANING}
    built = len(rows) - count["no reference"]
    lines = [
        "# Language models that export",
        "",
        f"{count['ok']} of {built} model types give the tokens of transformers "
        f"{transformers.__version__}, of {len(rows)} that were run and {known} in its mapping for "
        "causal language models. Written by `python benchmarks/llm_coverage.py`: a small random "
        "model of each type is exported, reads a prompt of 23 tokens in padded chunks of 8 and "
        "decodes 16 tokens greedily in LiteRT, float32.",
        "",
        *(f"* **{name}** ({count[name]}): {text}" for name, text in MEANING.items()),
        "",
        "`error` is the largest difference of a logit over the largest logit; `distinct` is how "
        "many of the 16 tokens differ from each other.",
        "",
        "| type | result | error | distinct | CPU s | |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda r: (list(MEANING).index(r["status"]), r["type"])):
        error = f"{row['error']:.0e}" if "error" in row else ""
        detail = row["detail"].replace("|", "\\|")
        cells = [row["type"], row["status"], error, str(row.get("distinct", "")), row["seconds"]]
        lines.append("| " + " | ".join(map(str, [*cells, detail])) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
