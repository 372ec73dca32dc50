"""``python -m forgefield.evaluation [ROOT]`` rewrites the generated documentation and schema of the metrics."""

import sys

from forgefield.evaluation.metrics_docs import write_generated_files

write_generated_files(sys.argv[1] if len(sys.argv) > 1 else ".")
