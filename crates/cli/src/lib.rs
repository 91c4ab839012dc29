//! What the command lines share: how errors are said, how output looks, and how arguments are read.
