"""From reads to candidates: seeds searched, selected and located."""
