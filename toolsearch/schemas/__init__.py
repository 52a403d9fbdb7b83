"""JSON Schema of a tool's arguments: made regular on the way in, checked against, made acceptable on the way out.

limits       the budget of a foreign schema           json_schema     regular schemas, and what in them is not checked
references   where a reference leads                  export          a schema as providers accept it
patterns     regular expressions in bounds            argument_texts  what a schema says in words, for an index
validation   a model's arguments: parsed, coerced, checked against the schema
compiled     a schema read once: references, enums, patterns
validator    a value and a compiled schema walked through together
budget       what one validation may cost             constraints     single keywords: lengths, bounds, patterns
json_values  JSON values: types, comparison, size     checking        a schema of the program's own, checked early
                                                      parallel_calls  several calls in one
"""
