"""The exported scorer in Python and in JavaScript, file beside file; joined, it is one file without dependencies."""
