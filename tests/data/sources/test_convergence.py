"""What the outputs of programs say of calculations that did not converge."""

import pytest

from forgefield.data.sources.convergence import unconverged_frames

OUTCAR = "   NELM   =      3;   NELMIN=  2; NELMDL= -5     # of ELM steps\n"
REACHED = "------- aborting loop because EDIFF is reached -------\n"


def steps(ionic, electronic):
    return "".join(f"---- Iteration   {ionic:4d}({i + 1:4d})  ----\n" for i in range(electronic))


def calculation(n):
    return "<calculation>\n" + "<scstep>\n</scstep>\n" * n + "</calculation>\n"


CASES = {
    "VASP, the second of three": (
        "vasp-out",
        OUTCAR + steps(1, 2) + REACHED + steps(2, 3) + REACHED + steps(3, 1) + REACHED,
        {1: "not converged: 3 electronic steps, NELM is 3"},
    ),
    "VASP 6, which says so": (
        "vasp-out",
        OUTCAR + steps(1, 2) + "------- aborting loop EDIFF was not reached (unconverged) -------\n" + steps(2, 2),
        {0: "not converged: 2 electronic steps, NELM is 3"},
    ),
    "vasprun.xml": (
        "vasp-xml",
        '<i type="int" name="NELM">     4</i>\n' + calculation(3) + calculation(4),
        {1: "not converged: 4 electronic steps, NELM is 4"},
    ),
    "ORCA": (
        "orca-output",
        "SCF CONVERGED AFTER  9 CYCLES\n ORCA GEOMETRY RELAXATION STEP\n"
        "     *    SCF NOT CONVERGED AFTER 125 CYCLES   *\n ****ORCA TERMINATED NORMALLY****\n",
        {1: "not converged: SCF NOT CONVERGED AFTER 125 CYCLES"},
    ),
    "Quantum ESPRESSO": (
        "espresso-out",
        "     convergence has been achieved in  16 iterations\n"
        "     convergence NOT achieved after 100 iterations: stopping\n",
        {1: "not converged: convergence NOT achieved after 100 iterations"},
    ),
    "a format that does not say": ("extxyz", OUTCAR + steps(1, 3), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_unconverged_frames(tmp_path, case):
    form, text, expected = CASES[case]
    (tmp_path / "output").write_text(text)
    assert unconverged_frames(tmp_path / "output", form) == expected
