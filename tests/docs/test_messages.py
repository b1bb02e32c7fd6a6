"""docs/troubleshooting.md contains every error message of the code, and no other."""

import re

from tests.helpers.programs.messages import messages, sentences

PAGE = "docs/troubleshooting.md"


def phrases(checkout) -> list[str]:
    """Return the quoted text in the first cells of the tables."""
    cells = re.findall(r"^\| (`.*?) \|", (checkout / PAGE).read_text(), re.MULTILINE)
    return [phrase for cell in cells for phrase in re.findall(r"`([^`]+)`", cell)]


def test_every_message_is_explained(checkout):
    known = phrases(checkout)
    every = messages(checkout) | sentences(checkout)
    assert len(every) > 150
    missing = [
        f"{where}: {text}"
        for text, where in every.items()
        if not any(phrase in text for phrase in known)
    ]
    assert not missing, f"{PAGE} does not explain:\n" + "\n".join(missing)


def test_every_explained_message_exists(checkout):
    every = messages(checkout) | sentences(checkout)
    text = (checkout / PAGE).read_text()
    workflow = text[text.index("## The workflow") : text.index("## Any program")]
    stale = [
        phrase
        for phrase in phrases(checkout)
        if phrase not in workflow and not any(phrase in message for message in every)
    ]
    assert not stale, f"{PAGE} explains what no code says:\n" + "\n".join(stale)
