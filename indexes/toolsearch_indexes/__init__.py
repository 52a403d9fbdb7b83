"""The search backends of toolsearch, one module each; opened by name through `toolsearch.open_index`.

document    how a tool becomes text        text, stem   the one lexical analysis chain
impacts     what a word weighs, and what is evidence    folders     an index on disk, shared and checked
confidence  what is known of a hit, and how sure that makes it
keyword     fielded BM25, the default      regex        patterns and plain words in a linear-time engine
whoosh, tantivy   `keyword` in a folder    faiss        `vector` for large catalogs
"""
