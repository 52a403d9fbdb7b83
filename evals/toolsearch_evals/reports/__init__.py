"""What an evaluation found, as data and in every form that people read.

report   a report as data: headline, tables, charts      forms   JSON, CSV, Markdown, HTML
page     the HTML page                                   chart   its charts
"""

from toolsearch_evals.reports.forms import FORMS, write
from toolsearch_evals.reports.report import Column, Report, ReportTable

__all__ = ["FORMS", "Column", "Report", "ReportTable", "write"]
