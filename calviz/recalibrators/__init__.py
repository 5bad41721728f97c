"""Recalibrators, one file per method or pair of methods; each registers itself in `calviz.specs.recalibrator.RECALIBRATORS`.

A method is a scikit-learn transformer that derives from `calviz.recalibrators.base.BaseRecalibrator`. Losses, minimisers and shapes of maps
are in ``fitting``. Methods do not choose the rows that they are fitted on and do not judge themselves: that is `calviz.comparison`.
"""
