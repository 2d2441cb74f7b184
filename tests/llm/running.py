"""Runs the model of a .litertlm file in LiteRT's interpreter as the engine does."""

import numpy as np

from litert_torch.llm import bundle
from litert_torch.runtime_bindings import LiteRTModel


class Runner:
    """A conversation: the file's model and its cache."""

    def __init__(self, path):
        self.model = LiteRTModel(bundle.contents(path, bundle.Kind.MODEL))
        self.lengths = sorted((int(s.inputs[0].shape[1]) for s in self._prefills()), reverse=True)
        self.is_dynamic = self.lengths == [-1]
        self.position = 0
        self.cache = {
            t.name: np.zeros([max(0, n) for n in t.shape], t.dtype)
            for t in self.model.signatures["decode"].inputs
            if "kv" in t.name
        }

    def _prefills(self):
        return (s for name, s in self.model.signatures.items() if name.startswith("prefill"))

    def prefill(self, tokens):
        """The largest signatures that fit, then the smallest, padded with token 0 at position 0.

        With dynamic shapes, all at once.
        """
        if self.is_dynamic:
            self._grow(len(tokens))
            self._call("prefill", tokens, np.arange(self.position, self.position + len(tokens)))
            self.position += len(tokens)
            return
        while len(tokens):
            size = next((n for n in self.lengths if n <= len(tokens)), self.lengths[-1])
            chunk, tokens = tokens[:size], tokens[size:]
            padding = (0, size - len(chunk))
            positions = np.arange(self.position, self.position + len(chunk))
            self._call(f"prefill_{size}", np.pad(chunk, padding), np.pad(positions, padding))
            self.position += len(chunk)

    def decode(self, token):
        """Logits [vocabulary] of what follows `token`."""
        self._grow(1)
        logits = self._call("decode", np.array([token]), np.array([self.position]))["logits"]
        self.position += 1
        return logits[0, 0]

    def greedy(self, prompt, count):
        """`count` tokens after the prompt; its last token goes through decode."""
        self.prefill(prompt[:-1])
        tokens = [int(prompt[-1])]
        for _ in range(count):
            tokens.append(int(self.decode(tokens[-1]).argmax()))
        return tokens[1:]

    def _grow(self, tokens):
        """As the engine does: 16 tokens more where the cache is full."""
        for name, values in self.cache.items() if self.is_dynamic else ():
            axis = 2 if name.startswith("kv_cache_k") else 3
            missing = self.position + tokens - values.shape[axis]
            more = [(0, 0)] * 4
            more[axis] = (0, -(-max(0, missing) // 16) * 16)
            self.cache[name] = np.pad(values, more)

    def _length(self):
        return self.cache["kv_cache_k_0"].shape[2]

    def _call(self, name, tokens, positions):
        mask = {}
        if self.is_dynamic:  # nothing reads it, but the engine needs the input
            mask["mask"] = np.full((1, 1, len(tokens), self._length()), np.nan, np.float32)
        outputs = self.model(
            signature_name=name,
            **mask,
            tokens=tokens[None].astype(np.int32),
            input_pos=positions.astype(np.int32),
            **self.cache,
        )
        self.cache = {name: outputs[name] for name in self.cache}
        return outputs
