"""The configuration: every key, its default, its meaning and its checks."""

from forgefield.config.dataset import DatasetConfig
from forgefield.config.evaluation import EvaluationConfig, PlotsConfig, StatisticsConfig
from forgefield.config.load import load_config
from forgefield.config.model import ModelConfig
from forgefield.config.run import Config, RunConfig
from forgefield.config.stages import stage_settings
from forgefield.config.training import TrainingConfig

__all__ = [
    "Config",
    "DatasetConfig",
    "EvaluationConfig",
    "ModelConfig",
    "PlotsConfig",
    "RunConfig",
    "StatisticsConfig",
    "TrainingConfig",
    "load_config",
    "stage_settings",
]
