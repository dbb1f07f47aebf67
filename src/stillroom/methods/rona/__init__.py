"""RONA (Wang et al. 2019): private compression. `algorithm` is Algorithm 1, `road` the way to it.

Where answers come from: `from_teacher` (trained with noise), `from_ensemble` (each answer charged),
`from_plain` (the paper's own, in `published`). What the paper claims is in `claims`.
"""
