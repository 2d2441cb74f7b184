"""Find out which part of a model does not convert, or converts to something else."""

from litert_torch.debug.culprit import Culprit, find_culprits
from litert_torch.debug.divergence import first_divergence
from litert_torch.debug.search import SearchResult, search_model

_search_model = search_model

__all__ = ["Culprit", "SearchResult", "find_culprits", "first_divergence", "search_model"]
