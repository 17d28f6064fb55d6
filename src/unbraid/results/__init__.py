"""What comes out of a fit, and knows nothing of fitting: models, branches, statuses, traces, files of models.

May import `data` and what lies below. The one import that points up is `Fit.report`, which people look for there.
"""
