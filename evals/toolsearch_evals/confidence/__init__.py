"""How far the confidence of an index can be trusted.

calibrate   fits it, and judges the fit     fitting   how it is fitted
elsewhere   judges it on data sets it was not fitted on
"""

from toolsearch_evals.confidence.calibrate import calibrate

__all__ = ["calibrate"]
