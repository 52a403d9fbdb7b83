"""JSON Schema of a tool's arguments: made regular on the way in, checked against, made acceptable on the way out.

json_schema  regular schemas, and what a provider takes       json_values  JSON values: types, comparison, size
validation   a model's arguments: parsed, coerced, checked    validator    a value and a schema walked through together
budget       what one validation may cost
constraints  single keywords: lengths, bounds, patterns       checking     a schema of the program's own, checked early
"""
