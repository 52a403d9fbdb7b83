"""`toolsearch eval`.

app       the command, to which the others add     options    options and files that the commands share
ranking_commands, savings_commands, delivery_commands, agent_commands   what can be asked for
speed_commands, own_commands, data_commands   further commands
run_commands   what can be asked of runs that were kept
recording_commands   what real conversations say    inspect_command   `toolsearch inspect`
agent_options   the options of `agent`              savings_options   those of `savings`
own_savings   savings on one's own tools
demo      a first look                             terminal   tables, bars and progress in the terminal
run_options   options of the commands that keep a run
doctor_command   `toolsearch doctor`               doctor_checks   what its checks are worth
"""

from toolsearch_evals.cli.app import app

# The help lists the commands in the order of these imports.
from toolsearch_evals.cli import ranking_commands, savings_commands, delivery_commands, agent_commands  # isort: skip
from toolsearch_evals.cli import doctor_checks  # isort: skip
from toolsearch_evals.cli import run_commands, speed_commands, own_commands, recording_commands, data_commands  # isort: skip

__all__ = [
    "agent_commands",
    "app",
    "data_commands",
    "delivery_commands",
    "doctor_checks",
    "own_commands",
    "ranking_commands",
    "recording_commands",
    "run_commands",
    "savings_commands",
    "speed_commands",
]
