"""What an evaluation found, as data and in every form that people read.

report    a report as data: headline, cards, tables, cases     forms      JSON, CSV, Markdown, HTML
values    how values are written                               chart      line charts, as data and SVG
page      the HTML page                                        waterfall  parts of a whole, as data and SVG
sections  its charts, tables and folded cases                  axes       even and logarithmic axes of charts
notebook  what a notebook shows of a report                    frames     rows as data frames of pandas or polars
plots     charts as plots of altair
"""

from toolsearch_evals.reports.chart import Chart, ChartLine
from toolsearch_evals.reports.forms import FORMS, write
from toolsearch_evals.reports.plots import Plots
from toolsearch_evals.reports.report import Card, Column, Detail, Details, Report, ReportTable, Said
from toolsearch_evals.reports.waterfall import Step, Waterfall

__all__ = [
    "FORMS",
    "Card",
    "Chart",
    "ChartLine",
    "Column",
    "Detail",
    "Details",
    "Plots",
    "Report",
    "ReportTable",
    "Said",
    "Step",
    "Waterfall",
    "write",
]
