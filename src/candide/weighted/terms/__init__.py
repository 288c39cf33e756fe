"""The kinds of terms of several columns, one file each."""
