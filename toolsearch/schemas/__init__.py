"""JSON Schema of a tool's arguments: made regular on the way in, checked against, made acceptable on the way out.

json_schema   regular schemas, and what a provider takes       validation   arguments: parsed, repaired, checked
checking      a schema of the program's own, checked early     json_values  JSON values: types, comparison, size
"""
