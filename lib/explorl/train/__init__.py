"""Training: one GRPO trainer with three seams, the policies it trains, and runs that survive being killed.

Nothing here imports TRL, Transformers or Unsloth before it is called, so that a script which wants Unsloth's
faster trainer can ``import unsloth`` first.
"""
