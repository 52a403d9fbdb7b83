"""Tasks with a real model over any endpoint: what it does to a small world, what is billed, how long it takes.

world       rooms, loans, stock, issues: tables that tools really change      tasks      what to do, and its checked end
catalogs    the world's tools, filled up with others to N       endpoint   a provider's client, its requests measured
probe       whether an endpoint reads tools                     json_adapter   tools for a model that does not read them
play        one task                                            evaluation     all of them, within a budget
rows        shares and means with intervals                     report         what is told about them
cards       what a page shows besides tables                    agent_run      an evaluation as a run
loopback    a provider on this machine …                        scripted_model … whose model knows the solutions
"""

from toolsearch_evals.agent.endpoint import Endpoint
from toolsearch_evals.agent.evaluation import AgentPlan, Budget, evaluate
from toolsearch_evals.agent.play import Arm, Asked
from toolsearch_evals.agent.probe import probe
from toolsearch_evals.agent.report import agent_report

__all__ = ["AgentPlan", "Arm", "Asked", "Budget", "Endpoint", "agent_report", "evaluate", "probe"]
