"""Cases, measures and reports that say what tool search saves and what it misses.

Data
    cases             labelled cases and their tools, read from a folder
    check             what is wrong with a data set
    derive            larger catalogs, made up from a given one and marked as derived
What is measured
    measures          recall, NDCG, coverage, false answers
    measure_plugins   measures that other packages and programs add
    ranking           how well an index ranks
    compare           two indexes, case by case
    calibrate         how far the confidence of an index can be trusted
    fitting           how that confidence is fitted
    learning          what learning from use brings, in simulated months
    simulated_month   the requests of such a month
    elsewhere         confidence on data sets it was not fitted on
    speed             how fast the indexes are
    import_cost       what the import costs
    savings           what search saves over whole conversations, by catalog size
    savings_rows      its rows, and where search breaks even
    spring            the same in a published setting
How it is measured
    installed         what installed packages add, by entry points
    testing           checks for what you add
    backends          an index by its notation, with its encoder
    engines           what is timed: our indexes and published engines
    engine_process    one engine in a process of its own
    scripted          the model that plays conversations
    argument_maker    the arguments it passes
    formats           what it writes, and what a request looks like, on each wire
    format_plugins    formats that other packages and programs add
    search_answers    what a model reads when it searches, and what it costs
    token_usage       tokens of exact payloads, cached or not
What is reported
    report            a report as data
    ranking_report, learning_report, speed_report, savings_report   what those measured, as reports
    savings_charts, savings_notes   the charts of the last, and what it says about itself
    forms             JSON, CSV, Markdown, HTML
    page, chart       the HTML page and its charts
    terminal          tables, bars and progress in the terminal
The command
    cli               `toolsearch eval`
    cli_options       the options its commands share
    demo              a first look
"""
