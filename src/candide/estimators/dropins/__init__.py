"""scikit-learn's five naive Bayes classifiers: its parameters, attributes and results, from tallies."""
