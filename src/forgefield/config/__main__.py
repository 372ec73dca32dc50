"""``python -m forgefield.config [ROOT]`` rewrites the generated documentation and schema of the configuration."""

import sys

from forgefield.config.generate import write_generated_files

write_generated_files(sys.argv[1] if len(sys.argv) > 1 else ".")
