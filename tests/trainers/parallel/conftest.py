"""Makes the programs that tests of trainers start importable here too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
