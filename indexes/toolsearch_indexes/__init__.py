"""The search backends of toolsearch, one module each; opened by name through `toolsearch.index.open_index`.

document    how a tool becomes text        text, stem   the one lexical analysis chain
keyword     fielded BM25, the default      regex        patterns and plain words in a linear-time engine
"""
