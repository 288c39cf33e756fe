"""The scorer, in Python of the standard library alone and in JavaScript, file beside file; joined, it is one file."""
