"""Known-bad variants of what ships: each breaks one rule, and the simulator must find it.

`MUTANTS` break what writers do; runs with consumers find `CONSUMER_MUTANTS`.
"""

from tests.simulation.mutants.consume import CONSUMER_MUTANTS as CONSUMER_MUTANTS
from tests.simulation.mutants.gaps import GAP_MUTANTS
from tests.simulation.mutants.release import RELEASE_MUTANTS
from tests.simulation.mutants.trim import TRIM_MUTANTS
from tests.simulation.mutants.withdraw import WITHDRAW_MUTANTS

MUTANTS = RELEASE_MUTANTS | TRIM_MUTANTS | GAP_MUTANTS | WITHDRAW_MUTANTS
