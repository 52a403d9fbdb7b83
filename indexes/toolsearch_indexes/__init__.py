"""The search backends of toolsearch, one module each; opened by name through `toolsearch.open_index`.

The indexes
  keyword    fielded BM25                            regex    patterns and plain words in a linear-time engine
  vector     meaning, by the vectors of an encoder   hybrid   `keyword` and `vector` blended
  best       `hybrid` with an encoder for English, and one for other languages
  whoosh, tantivy   `keyword` in a folder            faiss    `vector` in a folder
  default    what "auto" opens: `hybrid`, or `keyword` where no encoder is installed
What they are made of
  document   how a tool becomes text                 text, stem   how text becomes words
  bm25f      what a word of a tool weighs            postings     which tools hold a word, and its weight in each
  query      how a query is read                     spelling     what a misspelt word may stand for
  synonyms   other words for a word of a query       readable_scripts   whether an encoder can read a script
  tool_vectors   what an encoder makes of tools      encoding     the same in the background
  vectors    a matrix of vectors by tool             faiss_matrix   a large one, searched by faiss
  encoders   text to vectors: a package of its own
  word_engine   what whoosh and tantivy share        on_disk      a folder for an index, shared and checked
  fitted_confidence   what is known of a hit, and the probability that it is relevant
"""
