"""The functions of Candide: everything that the command line does with data and models.

A model is a fitted estimator or the path of a model file. Data are a file, a folder, a query, a data frame, a relation,
or columns by name. Every function also takes these options by name, where they apply:

- ``target``, ``weight``: the columns of labels and of row weights;
- fields of :class:`~candide.engines.reading.ReadOptions`, how a source is read: ``na``, ``delimiter``, ``header``, ...;
- fields of :class:`~candide.model.settings.Settings`, how counts become a model: ``class_prior``, ``estimate``, ...;
- ``force``: replace the output file even if Candide did not write it or it is an input; checked before any work;
- ``wait``: seconds to wait for another process that changes the model file; ``watch``: a progress display.

>>> import candide as cd
>>> from candide.demo import garden_rows
>>> plants, herb = garden_rows(300, seed=0)
>>> garden = {**plants, "herb": herb}
>>> model = cd.fit(garden, "herb", model="naive")
>>> round(cd.evaluate(model, garden).accuracy, 2), cd.predict_table(model, plants).num_rows
(0.95, 300)
>>> cd.update_model(model, garden).fitted.counts.n_rows
600
"""

from candide.api.fitting import (
    check_data,
    compare_settings,
    cross_validate,
    fit,
    fit_from_counts,
    fit_model,
    load,
    make_counting_query,
)
from candide.api.models import (
    adapt_prior,
    describe_model,
    detect_drift,
    diff_models,
    evaluate,
    explain_rows,
    export_model,
    forget_rows,
    merge_models,
    plot_model,
    predict_table,
    predict_text,
    reweight_model,
    slide_window,
    update_model,
    write_report,
)

__all__ = [
    "adapt_prior",
    "check_data",
    "compare_settings",
    "cross_validate",
    "describe_model",
    "detect_drift",
    "diff_models",
    "evaluate",
    "explain_rows",
    "export_model",
    "fit",
    "fit_from_counts",
    "fit_model",
    "forget_rows",
    "load",
    "make_counting_query",
    "merge_models",
    "plot_model",
    "predict_table",
    "predict_text",
    "reweight_model",
    "slide_window",
    "update_model",
    "write_report",
]
