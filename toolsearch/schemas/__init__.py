"""JSON Schema of a tool's arguments: made regular on the way in, checked against, made acceptable on the way out.

limits       the budget of a foreign schema           json_schema     regular schemas, and what in them is not checked
references   where a reference leads                  drafts          schemas of older drafts in the words of 2020-12
patterns     regular expressions in bounds            argument_texts  what a schema says in words, for an index
validation   a model's arguments: parsed, coerced, checked against the schema
compiled     a schema read once: references, enums, patterns
validator    a value and a compiled schema walked through together
budget       what one validation may cost             constraints     single keywords: lengths, bounds, patterns
json_values  JSON values: types, comparison, size     checking        a schema of the program's own, checked early
                                                      parallel_calls  several calls in one
export       a schema as a provider accepts it        targets         what each kind of provider accepts
root_folding one object of the root's combinators     argument_names  names that every provider accepts
export_whole, export_reduced   the walk for those who read all of JSON Schema, and for the others
export_words, export_parts     what is said instead of sent; what both walks share
"""
