"""How a mace-torch model is refused: in one line that says what is wrong and the way out."""

from forgefield.errors import UserError

REFUSED = "this mace-torch model cannot be imported"
SAVE_AGAIN = "save it again with mace-torch 0.3.16"


class MissingPartError(UserError, AttributeError):
    """What a pickled object lacks; as an AttributeError it lets ``hasattr`` and a default of ``getattr`` pass."""

    def __init__(self, name: str, owner: str) -> None:
        super().__init__(f"{REFUSED}: it has no {name} (class {owner}); {SAVE_AGAIN}")


def in_words(error: Exception) -> str:
    """Kind and text of an error in one line; some have no text."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
