"""Which units a file's numbers seem to be in, with the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import yaml

from forgefield.data.consistency import Slope, explanations, slope
from forgefield.data.joined import Joined
from forgefield.data.lengths import ratio_text
from forgefield.data.magnitudes import Magnitudes
from forgefield.data.structures import Structure
from forgefield.units import Units

LENGTHS = ("angstrom", "bohr", "nm")
ENERGIES = ("eV", "kcal/mol", "kJ/mol", "hartree")
ALL_ELECTRONS = 0.03  # relative; how well the semiclassical energy meets those of all-electron calculations


@dataclass(frozen=True)
class Guess:
    """Units, and why.

    Attributes:
        units: what the file states, completed by what its numbers suggest.
        stated: kinds of quantity whose unit the file or its format states.
        evidence: one line each.
        contradictions: what conversion will stop at; empty where the numbers fit the units.
    """

    units: Units
    stated: list[str]
    evidence: list[str]
    contradictions: list[str]


def guess_units(sample: Sequence[Structure], stated: Mapping[str, str]) -> Guess:
    """Judge some structures in the order of their source, whose numbers are as in the file.

    Args:
        sample: some structures.
        stated: unit by kind of quantity, as the file or its format states it.
    """
    evidence = [f"{kind}: {unit}, as the file or its format states" for kind, unit in stated.items()]
    length = stated.get("length") or _length(sample, evidence)
    energy = stated.get("energy") or _energy(sample, length, evidence)
    units = Units(energy, length, **{kind: unit for kind, unit in stated.items() if kind not in ("energy", "length")})
    found = slope([scaled(structure, Units(energy, length)) for structure in sample])
    if found.pairs:
        units, text = _judge(found, units, sample, "forces" in stated)
        evidence.append(text)
    contradictions = _magnitudes(sample, units).contradictions(units)
    if found.is_contradiction and units.forces is None:
        contradictions.append("energies do not fit the forces, see the slope")
    return Guess(units, list(stated), evidence, contradictions)


def scaled(structure: Structure, units: Units) -> Structure:
    """A structure in eV and Å whose numbers were in ``units``."""
    factors = units.factors(Units())
    return replace(
        structure,
        positions=structure.positions * factors.length,
        cell=structure.cell * factors.length,
        energy=None if structure.energy is None else structure.energy * factors.energy,
        forces=None if structure.forces is None else structure.forces * factors.forces,
    )


def _magnitudes(sample: Sequence[Structure], units: Units) -> Magnitudes:
    magnitudes = Magnitudes()
    if sample:
        magnitudes.add(Joined([scaled(structure, units) for structure in sample]))
    return magnitudes


def _length(sample: Sequence[Structure], evidence: list[str]) -> str:
    few = [structure for structure in sample if len(structure) > 1][:4]
    ratios = {unit: _magnitudes(few, Units(length=unit)).bond_ratio for unit in LENGTHS}
    unit = min(LENGTHS, key=lambda unit: abs(np.log(ratios[unit])))
    if few:
        near, *others = (f"{ratio_text(ratios[u])} in {u}" for u in sorted(LENGTHS, key=lambda u: u != unit))
        evidence.append(
            "length: in sums of two covalent radii, nearest neighbors are apart by "
            f"{near} (and {', '.join(others)}); 1 is usual"
        )
    return unit


def _energy(sample: Sequence[Structure], length: str, evidence: list[str]) -> str:
    """The first unit that nothing contradicts; one in which the energy is that of all electrons is taken before."""
    tried = {energy: _magnitudes(sample, Units(energy, length)) for energy in ENERGIES}
    against = {unit: _against(magnitudes, Units(unit, length)) for unit, magnitudes in tried.items()}
    possible = [unit for unit in ENERGIES if not against[unit]]
    exact = [e for e in possible if (ratio := tried[e].energy_ratio) and abs(ratio - 1) < ALL_ELECTRONS]
    unit = (exact or possible or ENERGIES)[0]
    if unit in exact:
        ratio = f"{tried[unit].energy_ratio:.3f}"
        evidence.append(f"energy: total energies in {unit} are {ratio} times those of all electrons of the same atoms")
    elif not possible:
        evidence.append(f"energy: no unit fits; {against[unit][0]}")
    elif unit == "eV":
        evidence.append("energy: nothing contradicts eV, and without core electrons the energies tell no more")
    else:
        evidence.append(f"energy: {unit} is the first unit that fits; in eV {against['eV'][0].split(';')[0]}")
    return unit


def _against(magnitudes: Magnitudes, units: Units) -> list[str]:
    """What speaks against a unit of energy."""
    return [text for text in magnitudes.contradictions(units) if text.startswith("energies")]


def _judge(found: Slope, units: Units, sample: Sequence[Structure], forces_stated: bool) -> tuple[Units, str]:
    text = (
        f"slope: over {found.pairs} pairs of frames that follow each other, energies change by {found.slope:.4g} times "
        f"the work of the forces (correlation {found.correlation:.3f})"
    )
    if not found.is_certain:
        return units, f"{text}, too weak to tell"
    if not found.is_contradiction:
        return units, f"{text}: energies and forces fit each other"
    fits = explanations(found.slope, units, len(sample[0]))
    setting = next((yaml.safe_load(fit)["units"] for fit in fits if fit.startswith("units:")), None)
    text += f", where 1 is expected; that fits {' or '.join(fits) or 'no unit known here'}"
    if setting is None or forces_stated or setting["energy"] != units.energy:
        return units, text
    return replace(units, forces=setting["forces"]), text
