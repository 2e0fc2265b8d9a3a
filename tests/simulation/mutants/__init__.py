"""Known-bad variants of what ships: each breaks one rule, and the simulator must find it."""

from tests.simulation.mutants.consume import CONSUMER_MUTANTS
from tests.simulation.mutants.gaps import GAP_MUTANTS
from tests.simulation.mutants.release import RELEASE_MUTANTS
from tests.simulation.mutants.trim import TRIM_MUTANTS
from tests.simulation.mutants.withdraw import WITHDRAW_MUTANTS

MUTANTS = RELEASE_MUTANTS | TRIM_MUTANTS | GAP_MUTANTS | WITHDRAW_MUTANTS | CONSUMER_MUTANTS
