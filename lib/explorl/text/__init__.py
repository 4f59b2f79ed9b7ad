"""From a completion to structure: :mod:`~explorl.text.strategies` and :mod:`~explorl.text.answers`."""
