"""What scores an experiment: its benchmark's measures, subsets and groups for its split, and those that its file adds."""

from ifqa.config.experiment import Experiment
from ifqa.scoring.declared import Declared, declared


def declared_for(experiment: Experiment) -> Declared:
    """What an experiment's benchmark declares for its split, and the measures that its file adds.

    Raises:
        IfqaError: as `ifqa.scoring.declared.declared`.
    """
    return declared(experiment.benchmark, experiment.measures, experiment.root, experiment.split)
