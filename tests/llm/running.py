"""Runs the model of a .litertlm file in LiteRT's interpreter as the engine does."""

import numpy as np

from litert_torch.llm import bundle
from litert_torch.runtime_bindings import LiteRTModel


class Runner:
    """A conversation: the file's model and its cache."""

    def __init__(self, path):
        self.model = LiteRTModel(bundle.contents(path, bundle.Kind.MODEL))
        self.lengths = sorted((int(s.inputs[0].shape[1]) for s in self._prefills()), reverse=True)
        decode = self.model.signatures["decode"]
        self.cache = {t.name: np.zeros(t.shape, t.dtype) for t in decode.inputs if "kv" in t.name}
        self.position = 0

    def _prefills(self):
        return (s for name, s in self.model.signatures.items() if name.startswith("prefill"))

    def prefill(self, tokens):
        """The largest signatures that fit, then the smallest, padded with token 0 at position 0."""
        while len(tokens):
            size = next((n for n in self.lengths if n <= len(tokens)), self.lengths[-1])
            chunk, tokens = tokens[:size], tokens[size:]
            padding = (0, size - len(chunk))
            positions = np.arange(self.position, self.position + len(chunk))
            self._call(f"prefill_{size}", np.pad(chunk, padding), np.pad(positions, padding))
            self.position += len(chunk)

    def decode(self, token):
        """Logits [vocabulary] of what follows `token`."""
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

    def _call(self, name, tokens, positions):
        outputs = self.model(
            signature_name=name,
            tokens=tokens[None].astype(np.int32),
            input_pos=positions.astype(np.int32),
            **self.cache,
        )
        self.cache = {name: outputs[name] for name in self.cache}
        return outputs
