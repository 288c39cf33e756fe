"""Text in the weighted model: the options of a text column and the weights of its tokens."""
