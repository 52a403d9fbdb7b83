"""What is wrong with a set of tools, ranked by measured harm.

findings     what can be found                     definitions   everything that is found in definitions
schemas      arguments that no value fits          exports       what providers refuse, lose, cannot be sent
searches     what a plain search misses            texts         hostile texts, look-alikes, names of others
rates        harm and false alarms, as shipped     rates.json    the same, made by a command

configuration  secrets, plain connections, programs without a version
launching    how a server starts and ends          servers       the servers of a configuration, started

examination  what was found in a set of tools      report        the same, as a report

planting     defects that are planted              trials        what they cost, and how many are found
configured   defects of entries and of servers
alarms       what is said of clean tools           trial_report  what the checks are worth, as a report
"""
