"""The functions of the package and of the command line.

A model is a fitted estimator or the path of a model file. Data are a file, a folder, a query, a data frame, a relation,
or columns by name. Every function also takes these options by name, where they apply:

- ``target``, ``weight``: the columns of labels and of row weights;
- fields of :class:`~candide.engines.reading.ReadOptions`, how a source is read: ``na``, ``delimiter``, ``header``, ...;
- fields of :class:`~candide.model.settings.Settings`, how counts become a model: ``class_prior``, ``estimate``, ...;
- ``force``: replace the output file even if Candide did not write it or it is an input; checked before any work;
- ``wait``: seconds to wait for another process that changes the model file; ``watch``: a progress display.
"""
